from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from casewright.finetune.example import PLAN_TASK, TrainingExample
from casewright.finetune.examples.tevo import TevoSettings, VariedQuery
from casewright.finetune.examples.ttg import TASK_NAMES, TaskName, TtgSettings, task_examples
from casewright.planner import AnnotatedQuery, render_prompt
from casewright.planner.prompt import ROLE
from tests.planner.helpers import SHOP
from tests.support.training_examples import calls_of, evolve, tools_of

TWO_QUERIES = (
    's1 = own(query="tent")\ns2 = fact(item_id=s1.item_id, query="how heavy is it")\n'
    's3 = own(query="radio")\ns4 = fact(item_id=s3.item_id, query="how loud")'
)
QUESTION = "my tent, how heavy is it, and my radio, how loud"
MIXED = (
    's1 = own(query="tent")\ns2 = fact(item_id=s1.item_id, query="heavy")\ns3 = desk(query="radio")'
)
SEEDS = range(60)


def gold(plan: str = TWO_QUERIES, query: str = QUESTION, **fields: Any) -> AnnotatedQuery:
    return AnnotatedQuery.read({"id": "q1", "query": query, "plan": plan, **fields})


def as_served(query: AnnotatedQuery) -> VariedQuery:
    off = TevoSettings(enabled=False, shots=0)
    return evolve(query, SHOP, off, {}, None, random.Random(0))


def build(task: TaskName, query: AnnotatedQuery, seed: int = 0) -> TrainingExample | None:
    settings = TtgSettings(tasks_per_query=2, tasks=(task,))
    examples = task_examples(as_served(query), settings, random.Random(seed))[1:]
    return examples[0] if examples else None


def build_all(task: TaskName, query: AnnotatedQuery) -> Iterator[TrainingExample]:
    """Yield the example of a task for each seed. The task must apply with every seed."""
    examples = [build(task, query, seed) for seed in SEEDS]
    assert None not in examples
    yield from (example for example in examples if example is not None)


def text_under(example: TrainingExample, heading: str) -> str:
    """Return the text under a heading in the tail of the prompt."""
    return example.prompt.tail.partition(f"\n\n{heading}:\n")[2].partition("\n\n")[0]


def test_zero_tasks_per_query_gives_no_planning_example() -> None:
    assert task_examples(as_served(gold()), TtgSettings(tasks_per_query=0), random.Random(0)) == []


def test_fractional_tasks_per_query_are_drawn_as_a_share_of_queries() -> None:
    low, high = TtgSettings(tasks_per_query=0.25), TtgSettings(tasks_per_query=1.25)
    rng = random.Random(0)
    assert 15 < sum(len(task_examples(as_served(gold()), low, rng)) for _ in range(100)) < 35
    assert 115 < sum(len(task_examples(as_served(gold()), high, rng)) for _ in range(100)) < 135


def test_single_task_per_query_is_planning() -> None:
    (example,) = task_examples(as_served(gold()), TtgSettings(tasks_per_query=1), random.Random(0))
    assert (example.id, example.task, example.source) == ("q1#0:plan", PLAN_TASK, "q1")
    assert example.prompt == render_prompt(gold().record.request(SHOP))
    assert example.completion == TWO_QUERIES


@pytest.mark.parametrize("count", range(2, 9))
def test_query_gets_the_requested_number_of_different_tasks(count: int) -> None:
    for seed in range(10):
        settings = TtgSettings(tasks_per_query=count)
        examples = task_examples(as_served(gold()), settings, random.Random(seed))
        assert examples[0].task == PLAN_TASK
        assert len({example.task for example in examples}) == count
        assert [example.id for example in examples] == [
            f"q1#{number}:{example.task}" for number, example in enumerate(examples)
        ]


def test_query_gets_fewer_tasks_if_few_apply() -> None:
    examples = task_examples(
        as_served(gold("s1 = no_evidence()")), TtgSettings(tasks_per_query=8), random.Random(0)
    )
    assert [example.task for example in examples] == [PLAN_TASK, "identify_tools"]


def test_source_of_a_query_without_id_is_its_text() -> None:
    query = AnnotatedQuery.read({"query": "hello", "plan": "s1 = no_evidence()"})
    (example,) = task_examples(as_served(query), TtgSettings(tasks_per_query=1), random.Random(0))
    assert example.source == "hello"


@pytest.mark.parametrize(
    "task", [name for name in TASK_NAMES if name not in {"query_from_plan", "identify_tools"}]
)
def test_plan_writing_task_appends_the_planner_prompt_to_its_instruction(
    task: TaskName,
) -> None:
    planner_prompt = render_prompt(gold().record.request(SHOP))
    for example in build_all(task, gold()):
        assert example.prompt.head.startswith(ROLE)
        assert example.prompt.tail.endswith(f"\n\n{planner_prompt.tail}")
        assert example.prompt.head == planner_prompt.head or task == "provided_tools"


@pytest.mark.parametrize("task", TASK_NAMES)
def test_each_task_has_at_least_four_wordings(task: TaskName) -> None:
    wordings = {example.prompt.tail.partition("\n")[0] for example in build_all(task, gold())}
    assert len(wordings) >= 4
    assert not any("{" in wording for wording in wordings)


def test_query_from_plan_prompt_lists_the_words_that_the_plan_took() -> None:
    for example in build_all("query_from_plan", gold()):
        assert example.completion == QUESTION
        assert example.prompt.tail.endswith(f"Plan:\n{TWO_QUERIES}\nQuestion:")
        assert 'in it: "tent", "how heavy is it", "radio", "how loud".' in example.prompt.tail
        assert QUESTION not in str(example.prompt)


@pytest.mark.parametrize("value", ["question", '"something else"'])
def test_query_from_plan_is_not_posed_for_a_plan_without_question_words(value: str) -> None:
    assert build("query_from_plan", gold(f"s1 = desk(query={value})")) is None


def test_complete_plan_shows_the_first_steps_and_expects_the_whole_plan() -> None:
    lengths = set()
    for example in build_all("complete_plan", gold()):
        beginning = text_under(example, "Beginning of the plan")
        assert TWO_QUERIES.startswith(beginning + "\n")
        assert example.completion == TWO_QUERIES
        lengths.add(len(beginning.split("\n")))
    assert lengths == {1, 2, 3}


def test_fill_step_masks_one_step_and_expects_the_whole_plan() -> None:
    indices = set()
    for example in build_all("fill_step", gold()):
        masked = text_under(example, "Plan with a gap").split("\n")
        steps = example.completion.split("\n")
        (index,) = [n for n, (a, b) in enumerate(zip(masked, steps, strict=True)) if a != b]
        mask = masked[index].removeprefix(f"s{index + 1} = ")
        assert mask in example.prompt.tail.partition("\n\n")[0]
        indices.add(index)
    assert indices == {0, 1, 2, 3}


def test_fill_parameters_masks_values_and_expects_the_whole_plan() -> None:
    counts = set()
    for example in build_all("fill_parameters", gold()):
        masked = text_under(example, "Plan with gaps")
        (mask,) = {m for m in ("[MASK]", "___", "<missing>", "???") if m in masked}
        pattern = re.escape(masked).replace(re.escape(mask), r'("[^"]*"|question|s\d\.\w+)')
        match = re.fullmatch(pattern, example.completion)
        assert match
        assert mask in example.prompt.tail.partition("\n\n")[0]
        counts.add(len(match.groups()))
    # Of two values that could replace each other, at most one is masked.
    assert counts == {1, 2, 3}


def test_fill_parameters_may_mask_equal_values_together() -> None:
    plan = (
        "s1 = fact(item_id=context.p, query=question)\ns2 = fact(item_id=context.p, query=question)"
    )
    masked_plans = [
        text_under(example, "Plan with gaps")
        for example in build_all("fill_parameters", gold(plan, context={"p": "1"}))
    ]
    assert any("context" not in text and "question" not in text for text in masked_plans)


@pytest.mark.parametrize("task", ["complete_plan", "fill_step", "order_steps"])
def test_plan_of_one_step_gets_no_complete_fill_or_order_task(task: TaskName) -> None:
    assert build(task, gold('s1 = own(query="tent")')) is None


def order_steps(listing: str) -> str:
    """Return the plan in the order of the instruction: always the first step that may be next."""
    steps = dict(line.split(" = ", 1) for line in listing.split("\n"))
    needs = {
        label: set(re.findall(r"\b([A-Z])(?:\[\d+\])?\.", re.sub(r'"[^"]*"', "", call)))
        for label, call in steps.items()
    }
    numbers: dict[str, str] = {}
    while len(numbers) < len(steps):
        free_step = next(n for n in steps if n not in numbers and needs[n] <= set(numbers))
        numbers[free_step] = f"s{len(numbers) + 1}"
    calls = {
        label: re.sub(r"=([A-Z])(\[\d+\])?\.", lambda m: f"={numbers[m[1]]}{m[2] or ''}.", call)
        for label, call in steps.items()
    }
    return "\n".join(f"{number} = {calls[label]}" for label, number in numbers.items())


@pytest.mark.parametrize(
    "plan",
    [
        TWO_QUERIES,
        MIXED,
        's1 = find(query="tent")\ns2 = fact(item_id=s1.item_id, query="A.b")\n'
        "s3 = fact(item_id=s1[1].item_id, query=question)",
        's1 = desk(query="tent")\ns2 = desk(query="radio")\ns3 = own(query="tent")\n'
        "s4 = fact(item_id=s3.item_id, query=question)",
    ],
    ids=range(4),
)
def test_order_steps_has_exactly_one_right_order_by_its_instruction(plan: str) -> None:
    listings = set()
    for example in build_all("order_steps", gold(plan)):
        listing = text_under(example, "Steps")
        assert listing.split(" = ")[0] == "A"
        assert order_steps(listing) == example.completion == plan
        listings.add(listing)
    # A listing in the order of the plan would give the order away.
    unshuffled = re.sub(r"\bs(\d)\b", lambda m: "ABCDEFGH"[int(m[1]) - 1], plan)
    assert unshuffled not in listings


def test_order_steps_has_one_right_order_for_a_plan_of_twelve_steps() -> None:
    plan = "\n".join(
        f's{n} = own(query="tent")\ns{n + 1} = fact(item_id=s{n}.item_id, query=question)'
        for n in range(1, 12, 2)
    )
    for example in build_all("order_steps", gold(plan)):
        assert order_steps(text_under(example, "Steps")) == plan


def test_order_steps_is_not_posed_for_independent_steps() -> None:
    assert build("order_steps", gold('s1 = desk(query="tent")\ns2 = find(query="radio")')) is None


def test_identify_tools_names_each_tool_once_in_toolbox_order() -> None:
    plan = TWO_QUERIES + '\ns5 = find(query="tent")'
    for example in build_all("identify_tools", gold(plan)):
        assert example.completion == "find, own, fact"
        assert example.prompt.tail.endswith(f"Question: {QUESTION}\nTools:")
        assert not example.prompt.head.startswith(ROLE)


@pytest.mark.parametrize(
    ("tool", "plan"),
    [
        ("desk", 's1 = own(query="tent")\ns2 = fact(item_id=s1.item_id, query="heavy")'),
        ("own", 's1 = desk(query="radio")'),
        ("fact", 's1 = desk(query="radio")'),
        ("find", MIXED),
    ],
)
def test_provided_tools_answer_omits_steps_that_need_a_missing_tool(tool: str, plan: str) -> None:
    examples = [e for e in build_all("provided_tools", gold(MIXED)) if tool not in allowed(e)]
    assert {example.completion for example in examples} == {plan}
    # The tool is missing from the toolbox or excluded by the instruction.
    assert {tool in tools_of(example) for example in examples} == {True, False}


def allowed(example: TrainingExample) -> set[str]:
    """Return the tools that a prompt allows."""
    listed = set(tools_of(example))
    instruction = example.prompt.tail.partition(" Leave out")[0]
    named = {
        name
        for name in listed
        if re.search(rf"\b{name}\b", instruction.partition(":")[2] or instruction)
    }
    return named if "no_evidence" in named else listed


def test_provided_tools_answer_calls_only_provided_tools() -> None:
    for query in (gold(), gold(MIXED)):
        for example in build_all("provided_tools", query):
            assert calls_of(example.completion) <= allowed(example)
            assert calls_of(str(example.prompt)) <= set(tools_of(example))


def test_provided_tools_answer_is_no_evidence_if_no_step_remains() -> None:
    answers = {example.completion for example in build_all("provided_tools", gold())}
    assert answers == {"s1 = no_evidence()", TWO_QUERIES}


def test_provided_tools_answer_keeps_steps_shared_with_a_remaining_sub_query() -> None:
    rent = {"name": "rent", "parameters": {"item_id": ""}, "results": ["evidence"]}
    query = gold(
        's1 = desk(query="radio")\ns2 = own(query="tent")\n'
        "s3 = fact(item_id=s2.item_id, query=question)\ns4 = rent(item_id=s2.item_id)",
        tools_extra=[rent],
    )
    query.record.request(SHOP).validate(query.plan)
    answers = {
        example.completion
        for example in build_all("provided_tools", query)
        if "fact" not in allowed(example)
    }
    assert answers == {
        's1 = desk(query="radio")\ns2 = own(query="tent")\ns3 = rent(item_id=s2.item_id)'
    }


@pytest.mark.parametrize(
    "query",
    [gold("s1 = no_evidence()"), gold(accept=[["find"]])],
    ids=["nothing needed", "others right too"],
)
def test_provided_tools_is_not_posed_without_a_certain_answer(query: AnnotatedQuery) -> None:
    assert build("provided_tools", query) is None


def test_same_seed_gives_the_same_tasks() -> None:
    rows = [
        json.dumps(
            [
                example.to_row()
                for example in task_examples(as_served(gold()), TtgSettings(), random.Random(seed))
            ]
        )
        for seed in (1, 1, 2)
    ]
    assert rows[0] == rows[1] != rows[2]


@pytest.mark.parametrize(
    "setting", [{"tasks_per_query": 9}, {"tasks_per_query": -1}, {"tasks": ["guess"]}], ids=str
)
def test_invalid_ttg_setting_is_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TtgSettings(**setting)
