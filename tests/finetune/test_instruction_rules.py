"""Evolution of instructions by rules: evolved answers satisfy the constraints, others fail."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casewright.finetune.instructions import (
    RULES,
    Constraint,
    Instruction,
    Rule,
    RuleEvolver,
    holds,
)
from tests.support.examples import at_most

_SAMPLE = 'oak Anna 7 bread, river green don\'t P.S. one: Ulm. well! "so" é Straße a.b {x} - 1. Dr.'
WORDS = st.sampled_from(_SAMPLE.split())
TEXTS = st.lists(
    st.lists(WORDS, min_size=1, max_size=12).map(" ".join), min_size=1, max_size=4
).map("\n".join)
INSTRUCTIONS = st.builds(
    lambda prompt, answer: Instruction("x:1", "x:1", prompt, answer),
    TEXTS | st.text(min_size=1, max_size=60),
    TEXTS | st.text(min_size=1, max_size=60),
).filter(lambda drawn: bool(drawn.prompt.strip() and drawn.answer.strip()))


def instruction_of(prompt: str, answer: str) -> Instruction:
    return Instruction("x:1", "x:1", prompt, answer)


def applies(rule: Rule, instruction: Instruction) -> bool:
    return rule.apply(instruction, random.Random(0)) is not None


@settings(max_examples=at_most(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(INSTRUCTIONS, st.integers(0, 9))
def test_answer_evolved_by_a_rule_satisfies_its_constraint(
    instruction: Instruction, seed: int
) -> None:
    for rule in RULES.values():
        evolved = rule.apply(instruction, random.Random(seed))
        if evolved is not None:
            assert holds(evolved.constraints[0], evolved.answer), (rule.kind, evolved.answer)
            assert instruction.prompt.rstrip() in evolved.prompt
            assert evolved.constraints[0].wording in evolved.prompt


@settings(max_examples=at_most(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(INSTRUCTIONS, st.integers(0, 9))
def test_answer_evolved_by_several_rules_satisfies_all_constraints(
    instruction: Instruction, seed: int
) -> None:
    evolved = RuleEvolver(random.Random(seed)).evolve(instruction)
    if evolved is not None:
        assert 1 <= len(evolved.constraints) <= 3
        for constraint in evolved.constraints:
            assert holds(constraint, evolved.answer)
        parts = [RULES[constraint.kind].parts for constraint in evolved.constraints]
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
]


@pytest.mark.parametrize(("kind", "parameters", "right", "wrong"), ANSWERS)
def test_constraint_check_accepts_right_and_refuses_wrong_answers(
    kind: str, parameters: dict[str, Any], right: str, wrong: str
) -> None:
    constraint = Constraint(kind, parameters)
    assert holds(constraint, right)
    assert not holds(constraint, wrong)
    assert not holds(constraint, " ")


def test_every_rule_kind_has_an_example_of_its_check() -> None:
    assert {kind for kind, *_ in ANSWERS} == set(RULES)


@pytest.mark.parametrize(
    ("rule", "instruction"),
    [
        ("json", instruction_of("Answer in exactly one word.", "Yes")),
        ("begins_with", instruction_of("Correct the capitalization.", "I live in Rome.")),
        ("at_most_words", instruction_of("Call it.", "wolfram('rome')")),
        ("quoted", instruction_of("Who?", 'He said "me".')),
        ("no_commas", instruction_of("Which river?", "The Rhine")),
        (
            "excludes",
            instruction_of("Which river?", "Rivers run, and seven of them run into the sea."),
        ),
    ],
)
def test_rule_does_not_apply_to_an_instruction_it_would_break(
    rule: str, instruction: Instruction
) -> None:
    assert not applies(RULES[rule], instruction)


def test_constraint_is_placed_before_a_trailing_answer_cue() -> None:
    evolved = RULES["json"].apply(instruction_of("Name a tree.\nAnswer:", "oak"), random.Random(0))
    assert evolved is not None
    assert evolved.prompt.endswith("Name a tree.\nAnswer:")


def test_rule_evolver_uses_its_rules_evenly() -> None:
    evolver = RuleEvolver(random.Random(1), max_constraints=1)
    for number in range(300):
        evolver.evolve(instruction_of(f"Which of them is number {number}?", "the green one"))
    assert min(evolver.used.values()) > 15
    assert len(evolver.used) >= 5


def test_evolved_instruction_example_has_the_task_instruction_evolved() -> None:
    evolved = RULES["json"].apply(instruction_of("Why?", "So."), random.Random(0))
    assert evolved is not None
    assert evolved.to_example().task == "instruction:evolved"
