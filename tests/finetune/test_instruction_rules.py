"""Evolution by rules: every constraint is verified, and wrong answers do not pass for right."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casewright.finetune.instructions import (
    KINDS,
    Constraint,
    Instruction,
    PlannedQuery,
    RuleEvolver,
    holds,
    reader,
)
from casewright.finetune.instructions.instruction import planned_instruction
from casewright.finetune.instructions.rules import RULES, TOOL_RULES, Rule
from casewright.planner import AnnotatedQuery
from casewright.tools import Parameter, Source, Toolbox, ToolSpec
from tests.support.examples import at_most

_SAMPLE = 'oak Anna 7 bread, river green don\'t P.S. one: Ulm. well! "so" é Straße a.b {x} - 1. Dr.'
WORDS = st.sampled_from(_SAMPLE.split())
TEXTS = st.lists(
    st.lists(WORDS, min_size=1, max_size=12).map(" ".join), min_size=1, max_size=4
).map("\n".join)
MADE = st.builds(
    lambda prompt, answer: Instruction("x:1", "x:1", prompt, answer),
    TEXTS | st.text(min_size=1, max_size=60),
    TEXTS | st.text(min_size=1, max_size=60),
).filter(lambda one: bool(one.prompt.strip() and one.answer.strip()))


def made(prompt: str, answer: str) -> Instruction:
    return Instruction("x:1", "x:1", prompt, answer)


def applies(rule: Rule, instruction: Instruction) -> bool:
    return rule.evolved(instruction, random.Random(0)) is not None


@settings(max_examples=at_most(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(MADE, st.integers(0, 9))
def test_every_rule_keeps_its_own_constraint(instruction: Instruction, seed: int) -> None:
    for rule in RULES:
        evolved = rule.evolved(instruction, random.Random(seed))
        if evolved is not None:
            assert evolved.satisfied(), (rule.kind, evolved.answer)
            assert instruction.prompt.rstrip() in evolved.prompt
            assert evolved.constraints[0].wording in evolved.prompt


@settings(max_examples=at_most(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(MADE, st.integers(0, 9))
def test_constraints_that_are_put_together_are_all_kept(
    instruction: Instruction, seed: int
) -> None:
    evolved = RuleEvolver(random.Random(seed)).evolve(instruction)
    if evolved is not None:
        assert 1 <= len(evolved.constraints) <= 3
        assert evolved.satisfied()
        for constraint in evolved.constraints:
            assert holds(constraint, evolved.answer)
        parts = [KINDS[one.kind].parts for one in evolved.constraints]
        assert sum(map(len, parts)) == len(frozenset().union(*parts))


ANSWERS: list[tuple[str, dict[str, Any], str, str]] = [
    ("at_most_words", {"n": 3}, "one two three", "one two three four"),
    ("begins_with", {"phrase": "So:"}, "So: yes", "so: yes"),
    ("ends_with", {"phrase": "Bye."}, "Yes. Bye.", "Yes. Bye. "),
    ("quoted", {}, '"yes"', '"yes" or "no"'),
    ("json", {"key": "a"}, '{"a": "yes"}', '{"a": "yes", "b": "no"}'),
    ("no_commas", {}, "a; b", "a, b"),
    ("includes", {"word": "oak"}, "An Oak.", "An oaken door."),
    ("excludes", {"word": "oak"}, "An oaken door.", "An Oak."),
    ("only_tools", {"tools": ["dig"]}, "s1 = dig()", "s1 = dig()\ns2 = sow()"),
    ("without_tool", {"tool": "dig"}, "s1 = sow()", "no plan"),
]


@pytest.mark.parametrize(("kind", "parameters", "right", "wrong"), ANSWERS)
def test_check_tells_answers_apart(
    kind: str, parameters: dict[str, Any], right: str, wrong: str
) -> None:
    constraint = Constraint(kind, parameters)
    assert holds(constraint, right)
    assert not holds(constraint, wrong)
    assert not holds(constraint, " ")


def test_every_kind_has_its_check_tried() -> None:
    assert {kind for kind, *_ in ANSWERS} == set(KINDS)


@pytest.mark.parametrize(
    ("rule", "instruction"),
    [
        ("json", made("Answer in exactly one word.", "Yes")),
        ("begins_with", made("Correct the capitalization.", "I live in Rome.")),
        ("at_most_words", made("Call it.", "wolfram('rome')")),
        ("quoted", made("Who?", 'He said "me".')),
        ("no_commas", made("Which river?", "The Rhine")),
        ("excludes", made("Which river?", "Rivers run, and seven of them run into the sea.")),
    ],
)
def test_rule_leaves_alone_what_it_would_spoil(rule: str, instruction: Instruction) -> None:
    (one,) = [one for one in RULES if one.kind == rule]
    assert not applies(one, instruction)


def test_constraint_stands_before_a_prompt_that_waits_for_its_answer() -> None:
    (rule,) = [one for one in RULES if one.kind == "json"]
    evolved = rule.evolved(made("Name a tree.\nAnswer:", "oak"), random.Random(0))
    assert evolved is not None
    assert evolved.prompt.endswith("Name a tree.\nAnswer:")


def test_rules_are_used_alike() -> None:
    evolver = RuleEvolver(random.Random(1), most=1)
    for number in range(300):
        evolver.evolve(made(f"Which of them is number {number}?", "the green one"))
    assert min(evolver.used.values()) > 15
    assert len(evolver.used) >= 5


def planned(plan: str, *tools: str, question: str = "Dig, sow and reap") -> Instruction:
    sources = frozenset({Source.LITERAL, Source.STEP})
    specs = [
        ToolSpec(name, f"{name}s", (Parameter("what", sources=sources, required=False),))
        for name in tools
    ]
    query = AnnotatedQuery.read({"id": "1", "query": question, "plan": plan})
    return planned_instruction("x:1", "x:1", PlannedQuery(query, Toolbox(specs)))


def by_tool_rule(name: str, instruction: Instruction) -> Instruction | None:
    (rule,) = [one for one in TOOL_RULES if one.name == name]
    return rule.evolved(instruction, random.Random(3))


def test_plans_are_evolved_by_their_tools_alone() -> None:
    one = planned("s1 = dig()", "dig", "reap")
    assert not any(applies(rule, one) for rule in RULES)
    assert not any(by_tool_rule(rule.name, made("Dig!", "s1 = dig()")) for rule in TOOL_RULES)


def test_unneeded_tools_are_left_out_and_the_plan_stays() -> None:
    evolved = by_tool_rule("fewer_tools", planned("s1 = dig()", "dig", "reap"))
    assert evolved is not None
    assert evolved.planned is not None
    assert evolved.planned.toolbox.names == ("dig", "no_evidence")
    assert evolved.answer == "s1 = dig()"


def test_withdrawn_tool_takes_its_steps_along() -> None:
    evolved = by_tool_rule("withdrawn_tool", planned("s1 = dig()\ns2 = reap()", "dig", "reap"))
    assert evolved is not None
    assert evolved.planned is not None
    (left,) = {"dig", "reap"} & set(evolved.planned.toolbox.names)
    assert evolved.answer == f"s1 = {left}()"
    assert evolved.planned.query.query.startswith("Dig, sow and reap. ")


def test_tool_whose_result_is_needed_is_not_withdrawn() -> None:
    chained = planned("s1 = dig()\ns2 = reap(what=s1.evidence)", "dig", "reap")
    assert by_tool_rule("withdrawn_tool", chained) is None


def test_without_any_tool_that_fits_nothing_is_looked_up() -> None:
    evolved = by_tool_rule("no_tool_left", planned("s1 = dig()", "dig", "reap"))
    assert evolved is not None
    assert evolved.answer == "s1 = no_evidence()"
    # One that is much like the tool that goes could do its work.
    assert (
        by_tool_rule("no_tool_left", planned("s1 = dig_holes()", "dig_holes", "fill_holes")) is None
    )


def test_forbidden_tool_stays_in_the_prompt() -> None:
    evolved = by_tool_rule("forbidden_tool", planned("s1 = dig()", "dig", "reap"))
    assert evolved is not None
    assert evolved.planned is not None
    assert "reap" in evolved.planned.toolbox
    assert "reap" in evolved.planned.query.query.removeprefix("Dig, sow and reap")


def test_evolved_example_has_its_own_task() -> None:
    (rule,) = [one for one in RULES if one.kind == "json"]
    evolved = rule.evolved(made("Why?", "So."), random.Random(0))
    assert evolved is not None
    assert evolved.to_example().task == "instruction:evolved"


@pytest.mark.skipif("CASEWRIGHT_DATA" not in os.environ, reason="CASEWRIGHT_DATA is not set")
def test_all_instructions_of_the_published_sets_keep_what_every_rule_adds() -> None:
    data = Path(os.environ["CASEWRIGHT_DATA"])
    used: Counter[str] = Counter()
    for name in ("toolalpaca", "bfcl"):
        for one in reader(name).read(data / name, lambda why: None):
            for rule in TOOL_RULES:
                if (evolved := rule.evolved(one, random.Random(one.id))) is not None:
                    assert evolved.satisfied(), (rule.name, one.id)
                    used[rule.name] += 1
    assert set(used) == {rule.name for rule in TOOL_RULES}
