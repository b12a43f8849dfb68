from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from casewright.finetune.example import TrainingExample
from casewright.finetune.examples.data_section import DataSection
from casewright.finetune.examples.make_training_set import TrainingInputs, make_training_set
from casewright.finetune.examples.shared_toolboxes import MAX_BASES, AddedTools, vary_in_groups
from casewright.finetune.examples.tevo import PromptVariation, TevoSettings, VariedQuery
from casewright.finetune.examples.training_set import TrainingSet
from casewright.finetune.examples.ttg import TtgSettings, task_examples
from casewright.finetune.neighbours import Neighbours, question_key
from casewright.finetune.tool_pools import ToolPool
from casewright.planner import AnnotatedQuery, parse_plan, render_prompt
from tests.planner.helpers import SHOP
from tests.support.encoders import HashingEncoder
from tests.support.readers import toy_queries
from tests.support.training_examples import evolve

ENCODER = HashingEncoder(256)
QUERIES = toy_queries()
NEIGHBOURS = Neighbours(QUERIES, ENCODER)
POOLS = {
    "find": ToolPool(names=("search_shop", "look_for"), descriptions=("Looks for goods.",)),
    "fact": ToolPool(names=("ask_page",)),
}
COPIES = 2


def draw_groups(size: int, queries: Sequence[AnnotatedQuery] = QUERIES, seed: int = 0) -> list[Any]:
    settings = TevoSettings(queries_per_toolbox=size, unchanged=0.3)
    variation = PromptVariation(SHOP, settings, POOLS, NEIGHBOURS)
    return list(vary_in_groups(queries, variation, ENCODER, seed=seed, copies=COPIES))


def make_set(size: int) -> TrainingSet:
    tevo = {"queries_per_toolbox": size}
    fields = {"domain": "toy", "validation": 0.1, "copies": COPIES, "tevo": tevo}
    data = DataSection.model_validate({**fields, "ttg": {"tasks_per_query": 3}})
    return make_training_set(data, TrainingInputs(QUERIES, SHOP, POOLS), ENCODER)


def rows(side: Sequence[TrainingExample]) -> list[dict[str, str | int]]:
    return [example.to_row() for example in side]


@pytest.fixture(scope="module")
def groups() -> list[tuple[int, list[VariedQuery], random.Random]]:
    return draw_groups(16)


@pytest.fixture(scope="module")
def shared() -> TrainingSet:
    return make_set(16)


@pytest.mark.parametrize("size", [2, 5, 16])
def test_each_copy_assigns_every_query_to_one_shared_toolbox(size: int) -> None:
    counts: dict[int, Counter[Any]] = defaultdict(Counter)
    for copy, members, _ in draw_groups(size):
        assert len(members) <= size
        counts[copy].update(item.query.record.id for item in members)
    expected = Counter(query.record.id for query in QUERIES)
    assert counts == dict.fromkeys(range(1, COPIES + 1), expected)


def test_queries_of_a_shared_toolbox_have_the_same_prompt_head(groups: list[Any]) -> None:
    for _, members, _ in groups:
        assert len({render_prompt(item.request, item.plan_cases).head for item in members}) == 1
    # Many records add tools that half of the questions may need, so groups are small.
    assert COPIES * len(QUERIES) > 4 * len(groups)
    assert max(len(members) for _, members, _ in groups) == 16


def test_every_gold_plan_is_valid_with_its_shared_toolbox(groups: list[Any]) -> None:
    for _, members, _ in groups:
        for item in members:
            item.request.validate(item.plan)
            # Tools that the record removes stay removed.
            names = set(item.request.toolbox.names)
            assert names.isdisjoint(item.query.record.tools_removed)


def test_plan_cases_and_examples_use_only_tools_of_the_shared_toolbox(groups: list[Any]) -> None:
    for _, members, _ in groups:
        for item in members:
            box = item.request.toolbox
            plans = [tool.example.plan for tool in box if tool.example]
            for text in [*plans, *(plan_case.plan for plan_case in item.plan_cases)]:
                assert all(name in box for name in parse_plan(text).tools)


def test_no_question_is_an_example_or_plan_case_in_its_own_prompt(
    groups: list[Any],
) -> None:
    for _, members, _ in groups:
        box = members[0].request.toolbox
        examples = {question_key(tool.example.query) for tool in box if tool.example}
        assert examples.isdisjoint(question_key(item.query.query) for item in members)
        for item in members:
            assert question_key(item.query.query) not in {
                question_key(plan_case.query) for plan_case in item.plan_cases
            }


def test_records_with_extra_tools_share_some_but_not_all_toolboxes(
    groups: list[Any],
) -> None:
    counts = [sum(bool(item.query.record.tools_extra) for item in m) for _, m, _ in groups]
    assert max(counts) > 1
    assert max(counts) <= MAX_BASES
    assert 0 in counts


def test_shared_toolbox_lacks_tools_that_a_member_record_removes() -> None:
    rows = [("hello there", "s1 = no_evidence()", ["desk"])] * 30
    rows += [("hello you", "s1 = no_evidence()", [])] * 30
    queries = [
        AnnotatedQuery.read({"id": f"r{n}", "query": text, "plan": plan, "tools_removed": removed})
        for n, (text, plan, removed) in enumerate(rows)
    ]
    shared = draw_groups(8, queries)
    mixed = 0
    for _, members, _ in shared:
        flags = [bool(item.query.record.tools_removed) for item in members]
        mixed += len(set(flags)) == 2
        if any(flags):
            assert "desk" not in members[0].request.toolbox
    # Records without removed tools may share such a toolbox.
    assert mixed


def test_question_that_may_need_an_added_tool_does_not_get_it() -> None:
    def query_with(name: str, query: str, tool: str = "", description: str = "") -> AnnotatedQuery:
        extra = [{"name": tool, "parameters": {}, "description": description}] if tool else []
        plan = f"s1 = {tool or 'no_evidence'}()"
        record = {"id": name, "query": query, "plan": plan, "tools_extra": extra}
        return AnnotatedQuery.read(record)

    basket = query_with("basket", "what lies in my basket", "basket", "Shows the basket.")
    twin = query_with("twin", "read me the cart", "show_cart", "Shows the basket.")
    tide = query_with("tide", "when do waves come", "tide", "Tells about surf.")
    near = query_with("near", "is the basket full")
    far = query_with("far", "good morning")
    added = AddedTools([basket, twin, tide, near, far], ENCODER)
    assert not added.needs_no_tool_of(near, [tide, basket])
    assert added.needs_no_tool_of(near, [tide])
    assert added.needs_no_tool_of(far, [basket, tide])
    assert added.may_become_base(tide, [basket])
    assert not added.may_become_base(twin, [basket])
    # If no record adds a tool, nothing is embedded.
    encoder = HashingEncoder()
    assert AddedTools([near, far], encoder).needs_no_tool_of(near, [far])
    assert encoder.calls == []


def test_one_query_per_toolbox_gives_the_same_examples_as_evolve() -> None:
    """With one query per toolbox, sets stay equal to those made before toolboxes were shared."""
    settings, ttg = TevoSettings(), TtgSettings(tasks_per_query=3)
    training_set = make_set(1)
    held_out = {example.source for example in training_set.validation}
    neighbours = Neighbours([q for q in QUERIES if str(q.record.id) not in held_out], ENCODER)
    expected = {}
    for query in QUERIES:
        for copy in (1, 2):
            rng = random.Random(f"0:{query.record.id}:{copy}")
            varied = evolve(query, SHOP, settings, POOLS, neighbours, rng)
            for example in task_examples(varied, ttg, rng):
                name = example.id if copy == 1 else f"{example.id}@{copy}"
                expected[name] = replace(example, id=name)
    assert {example.id: example for example in training_set.examples}.items() <= expected.items()
    assert len(training_set.examples) > 0.95 * len(expected)


def test_same_seed_gives_the_same_training_set_with_shared_toolboxes(shared: TrainingSet) -> None:
    repeated = make_set(16)
    assert rows(repeated.train) == rows(shared.train)
    assert repeated == shared


def test_shared_toolboxes_do_not_depend_on_the_order_of_queries(groups: list[Any]) -> None:
    def prompts_of(drawn: list[Any]) -> list[Any]:
        return [(copy, [str(render_prompt(item.request)) for item in m]) for copy, m, _ in drawn]

    assert prompts_of(draw_groups(16, QUERIES[::-1])) == prompts_of(groups)
    assert prompts_of(draw_groups(16, seed=1)) != prompts_of(groups)


def test_prompt_heads_are_not_shared_between_training_and_validation(shared: TrainingSet) -> None:
    serving = {render_prompt(query.record.request(SHOP)).head for query in QUERIES}
    sides = [
        {example.prompt.head for example in side if example.task == "plan"} - serving
        for side in (shared.train, shared.validation)
    ]
    assert sides[0].isdisjoint(sides[1])
    # Secondary tasks that ask for a plan share the head of planning.
    heads = Counter(example.prompt.head for example in shared.train)
    assert max(heads.values()) > 16
