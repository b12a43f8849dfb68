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

TWO = (
    's1 = own(query="tent")\ns2 = fact(item_id=s1.item_id, query="how heavy is it")\n'
    's3 = own(query="radio")\ns4 = fact(item_id=s3.item_id, query="how loud")'
)
QUESTION = "my tent, how heavy is it, and my radio, how loud"
MIXED = (
    's1 = own(query="tent")\ns2 = fact(item_id=s1.item_id, query="heavy")\ns3 = desk(query="radio")'
)
SEEDS = range(60)


def read(plan: str = TWO, query: str = QUESTION, **more: Any) -> AnnotatedQuery:
    return AnnotatedQuery.read({"id": "q1", "query": query, "plan": plan, **more})


def as_served(query: AnnotatedQuery) -> VariedQuery:
    off = TevoSettings(enabled=False, shots=0)
    return evolve(query, SHOP, off, {}, None, random.Random(0))


def posed(task: TaskName, query: AnnotatedQuery, seed: int = 0) -> TrainingExample | None:
    settings = TtgSettings(tasks_per_query=2, tasks=(task,))
    found = task_examples(as_served(query), settings, random.Random(seed))[1:]
    return found[0] if found else None


def every(task: TaskName, query: AnnotatedQuery) -> Iterator[TrainingExample]:
    """Yield the task as it is posed with every seed; it applies with each or with none."""
    found = [posed(task, query, seed) for seed in SEEDS]
    assert None not in found
    yield from (example for example in found if example is not None)


def text_under(example: TrainingExample, heading: str) -> str:
    """Return what stands in the tail under a heading."""
    return example.prompt.tail.partition(f"\n\n{heading}:\n")[2].partition("\n\n")[0]


def test_zero_tasks_per_query_gives_no_planning_example() -> None:
    assert task_examples(as_served(read()), TtgSettings(tasks_per_query=0), random.Random(0)) == []


def test_fractional_tasks_per_query_are_drawn_as_a_share_of_queries() -> None:
    some, more = TtgSettings(tasks_per_query=0.25), TtgSettings(tasks_per_query=1.25)
    rng = random.Random(0)
    assert 15 < sum(len(task_examples(as_served(read()), some, rng)) for _ in range(100)) < 35
    assert 115 < sum(len(task_examples(as_served(read()), more, rng)) for _ in range(100)) < 135


def test_single_task_per_query_is_planning() -> None:
    (example,) = task_examples(as_served(read()), TtgSettings(tasks_per_query=1), random.Random(0))
    assert (example.id, example.task, example.source) == ("q1#0:plan", PLAN_TASK, "q1")
    assert example.prompt == render_prompt(read().record.request(SHOP))
    assert example.completion == TWO


@pytest.mark.parametrize("count", range(2, 9))
def test_query_gets_the_requested_number_of_different_tasks(count: int) -> None:
    for seed in range(10):
        settings = TtgSettings(tasks_per_query=count)
        made = task_examples(as_served(read()), settings, random.Random(seed))
        assert made[0].task == PLAN_TASK
        assert len({example.task for example in made}) == count
        assert [example.id for example in made] == [
            f"q1#{number}:{example.task}" for number, example in enumerate(made)
        ]


def test_query_gets_fewer_tasks_if_few_apply() -> None:
    made = task_examples(
        as_served(read("s1 = no_evidence()")), TtgSettings(tasks_per_query=8), random.Random(0)
    )
    assert [example.task for example in made] == [PLAN_TASK, "identify_tools"]


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
    served = render_prompt(read().record.request(SHOP))
    for example in every(task, read()):
        assert example.prompt.head.startswith(ROLE)
        assert example.prompt.tail.endswith(f"\n\n{served.tail}")
        assert example.prompt.head == served.head or task == "provided_tools"


@pytest.mark.parametrize("task", TASK_NAMES)
def test_each_task_has_at_least_four_wordings(task: TaskName) -> None:
    worded = {example.prompt.tail.partition("\n")[0] for example in every(task, read())}
    assert len(worded) >= 4
    assert not any("{" in wording for wording in worded)


def test_query_from_plan_prompt_lists_the_words_that_the_plan_took() -> None:
    for example in every("query_from_plan", read()):
        assert example.completion == QUESTION
        assert example.prompt.tail.endswith(f"Plan:\n{TWO}\nQuestion:")
        assert 'in it: "tent", "how heavy is it", "radio", "how loud".' in example.prompt.tail
        assert QUESTION not in str(example.prompt)


@pytest.mark.parametrize("value", ["question", '"something else"'])
def test_query_from_plan_is_not_posed_for_a_plan_without_question_words(value: str) -> None:
    assert posed("query_from_plan", read(f"s1 = desk(query={value})")) is None


def test_complete_plan_shows_the_first_steps_and_expects_the_whole_plan() -> None:
    lengths = set()
    for example in every("complete_plan", read()):
        begun = text_under(example, "Beginning of the plan")
        assert TWO.startswith(begun + "\n")
        assert example.completion == TWO
        lengths.add(len(begun.split("\n")))
    assert lengths == {1, 2, 3}


def test_fill_step_masks_one_step_and_expects_the_whole_plan() -> None:
    hidden = set()
    for example in every("fill_step", read()):
        shown = text_under(example, "Plan with a gap").split("\n")
        whole = example.completion.split("\n")
        (place,) = [n for n, (a, b) in enumerate(zip(shown, whole, strict=True)) if a != b]
        mask = shown[place].removeprefix(f"s{place + 1} = ")
        assert mask in example.prompt.tail.partition("\n\n")[0]
        hidden.add(place)
    assert hidden == {0, 1, 2, 3}


def test_fill_parameters_masks_values_and_expects_the_whole_plan() -> None:
    counts = set()
    for example in every("fill_parameters", read()):
        shown = text_under(example, "Plan with gaps")
        (mask,) = {m for m in ("[MASK]", "___", "<missing>", "???") if m in shown}
        pattern = re.escape(shown).replace(re.escape(mask), r'("[^"]*"|question|s\d\.\w+)')
        found = re.fullmatch(pattern, example.completion)
        assert found
        assert mask in example.prompt.tail.partition("\n\n")[0]
        counts.add(len(found.groups()))
    # Of two values that could stand in each other's place one at most is hidden.
    assert counts == {1, 2, 3}


def test_fill_parameters_may_mask_equal_values_together() -> None:
    plan = (
        "s1 = fact(item_id=context.p, query=question)\ns2 = fact(item_id=context.p, query=question)"
    )
    shown = [
        text_under(example, "Plan with gaps")
        for example in every("fill_parameters", read(plan, context={"p": "1"}))
    ]
    assert any("context" not in text and "question" not in text for text in shown)


@pytest.mark.parametrize("task", ["complete_plan", "fill_step", "order_steps"])
def test_plan_of_one_step_gets_no_complete_fill_or_order_task(task: TaskName) -> None:
    assert posed(task, read('s1 = own(query="tent")')) is None


def in_order(listed: str) -> str:
    """Do what the instruction says: always the first listed step that may come next."""
    steps = dict(line.split(" = ", 1) for line in listed.split("\n"))
    needs = {
        label: set(re.findall(r"\b([A-Z])(?:\[\d+\])?\.", re.sub(r'"[^"]*"', "", call)))
        for label, call in steps.items()
    }
    numbers: dict[str, str] = {}
    while len(numbers) < len(steps):
        ready = next(n for n in steps if n not in numbers and needs[n] <= set(numbers))
        numbers[ready] = f"s{len(numbers) + 1}"
    calls = {
        label: re.sub(r"=([A-Z])(\[\d+\])?\.", lambda m: f"={numbers[m[1]]}{m[2] or ''}.", call)
        for label, call in steps.items()
    }
    return "\n".join(f"{number} = {calls[label]}" for label, number in numbers.items())


@pytest.mark.parametrize(
    "plan",
    [
        TWO,
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
    for example in every("order_steps", read(plan)):
        listed = text_under(example, "Steps")
        assert listed.split(" = ")[0] == "A"
        assert in_order(listed) == example.completion == plan
        listings.add(listed)
    # Other than the plan itself, which would say its order.
    direct = re.sub(r"\bs(\d)\b", lambda m: "ABCDEFGH"[int(m[1]) - 1], plan)
    assert direct not in listings


def test_order_steps_has_one_right_order_for_a_plan_of_twelve_steps() -> None:
    plan = "\n".join(
        f's{n} = own(query="tent")\ns{n + 1} = fact(item_id=s{n}.item_id, query=question)'
        for n in range(1, 12, 2)
    )
    for example in every("order_steps", read(plan)):
        assert in_order(text_under(example, "Steps")) == plan


def test_order_steps_is_not_posed_for_independent_steps() -> None:
    assert posed("order_steps", read('s1 = desk(query="tent")\ns2 = find(query="radio")')) is None


def test_identify_tools_names_each_tool_once_in_toolbox_order() -> None:
    plan = TWO + '\ns5 = find(query="tent")'
    for example in every("identify_tools", read(plan)):
        assert example.completion == "find, own, fact"
        assert example.prompt.tail.endswith(f"Question: {QUESTION}\nTools:")
        assert not example.prompt.head.startswith(ROLE)


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ("desk", 's1 = own(query="tent")\ns2 = fact(item_id=s1.item_id, query="heavy")'),
        ("own", 's1 = desk(query="radio")'),
        ("fact", 's1 = desk(query="radio")'),
        ("find", MIXED),
    ],
)
def test_provided_tools_answer_omits_steps_that_need_a_missing_tool(gone: str, left: str) -> None:
    found = [e for e in every("provided_tools", read(MIXED)) if gone not in provided(e)]
    assert {example.completion for example in found} == {left}
    # Out of the toolbox, and by an instruction.
    assert {gone in tools_of(example) for example in found} == {True, False}


def provided(example: TrainingExample) -> set[str]:
    """Return the tools that a prompt lets be used."""
    listed = set(tools_of(example))
    instruction = example.prompt.tail.partition(" Leave out")[0]
    named = {
        name
        for name in listed
        if re.search(rf"\b{name}\b", instruction.partition(":")[2] or instruction)
    }
    return named if "no_evidence" in named else listed


def test_provided_tools_answer_calls_only_provided_tools() -> None:
    for query in (read(), read(MIXED)):
        for example in every("provided_tools", query):
            assert calls_of(example.completion) <= provided(example)
            assert calls_of(str(example.prompt)) <= set(tools_of(example))


def test_provided_tools_answer_is_no_evidence_if_no_step_remains() -> None:
    answers = {example.completion for example in every("provided_tools", read())}
    assert answers == {"s1 = no_evidence()", TWO}


def test_provided_tools_answer_keeps_steps_shared_with_a_remaining_sub_query() -> None:
    rent = {"name": "rent", "parameters": {"item_id": ""}, "results": ["evidence"]}
    query = read(
        's1 = desk(query="radio")\ns2 = own(query="tent")\n'
        "s3 = fact(item_id=s2.item_id, query=question)\ns4 = rent(item_id=s2.item_id)",
        tools_extra=[rent],
    )
    query.record.request(SHOP).validate(query.plan)
    answers = {
        example.completion
        for example in every("provided_tools", query)
        if "fact" not in provided(example)
    }
    assert answers == {
        's1 = desk(query="radio")\ns2 = own(query="tent")\ns3 = rent(item_id=s2.item_id)'
    }


@pytest.mark.parametrize(
    "query",
    [read("s1 = no_evidence()"), read(accept=[["find"]])],
    ids=["nothing needed", "others right too"],
)
def test_provided_tools_is_not_posed_without_a_certain_answer(query: AnnotatedQuery) -> None:
    assert posed("provided_tools", query) is None


def test_same_seed_gives_the_same_tasks() -> None:
    rows = [
        json.dumps(
            [
                example.to_row()
                for example in task_examples(as_served(read()), TtgSettings(), random.Random(seed))
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
