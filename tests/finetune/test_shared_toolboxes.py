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
from casewright.finetune.examples.shared_toolboxes import MAX_LEADERS, AddedTools, vary_in_groups
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


def groups(size: int, queries: Sequence[AnnotatedQuery] = QUERIES, seed: int = 0) -> list[Any]:
    settings = TevoSettings(queries_per_toolbox=size, unchanged=0.3)
    variation = PromptVariation(SHOP, settings, POOLS, NEIGHBOURS)
    return list(vary_in_groups(queries, variation, ENCODER, seed=seed, copies=COPIES))


def make_set(size: int) -> TrainingSet:
    tevo = {"queries_per_toolbox": size}
    told = {"domain": "toy", "validation": 0.1, "copies": COPIES, "tevo": tevo}
    data = DataSection.model_validate({**told, "ttg": {"tasks_per_query": 3}})
    return make_training_set(data, TrainingInputs(QUERIES, SHOP, POOLS), ENCODER)


def lines(side: Sequence[TrainingExample]) -> list[dict[str, str | int]]:
    return [example.to_row() for example in side]


@pytest.fixture(scope="module")
def sixteen() -> list[tuple[int, list[VariedQuery], random.Random]]:
    return groups(16)


@pytest.fixture(scope="module")
def shared() -> TrainingSet:
    return make_set(16)


@pytest.mark.parametrize("size", [2, 5, 16])
def test_each_copy_assigns_every_query_to_one_shared_toolbox(size: int) -> None:
    found: dict[int, Counter[Any]] = defaultdict(Counter)
    for copy, members, _ in groups(size):
        assert len(members) <= size
        found[copy].update(one.query.record.id for one in members)
    once = Counter(query.record.id for query in QUERIES)
    assert found == dict.fromkeys(range(1, COPIES + 1), once)


def test_queries_of_a_shared_toolbox_have_the_same_prompt_head(sixteen: list[Any]) -> None:
    for _, members, _ in sixteen:
        assert len({render_prompt(one.request, one.plan_cases).head for one in members}) == 1
    # Many records of the toy shop add tools, which half its questions may want.
    assert COPIES * len(QUERIES) > 4 * len(sixteen)
    assert max(len(members) for _, members, _ in sixteen) == 16


def test_every_gold_plan_is_valid_with_its_shared_toolbox(sixteen: list[Any]) -> None:
    for _, members, _ in sixteen:
        for one in members:
            one.request.validate(one.plan)
            # What the record says of the toolbox holds, whoever drew it.
            names = set(one.request.toolbox.names)
            assert names.isdisjoint(one.query.record.tools_removed)


def test_plan_cases_and_examples_use_only_tools_of_the_shared_toolbox(sixteen: list[Any]) -> None:
    for _, members, _ in sixteen:
        for one in members:
            box = one.request.toolbox
            shown = [tool.example.plan for tool in box if tool.example]
            for text in [*shown, *(shot.plan for shot in one.plan_cases)]:
                assert all(name in box for name in parse_plan(text).tools)


def test_no_question_is_an_example_or_plan_case_in_its_own_prompt(
    sixteen: list[Any],
) -> None:
    for _, members, _ in sixteen:
        box = members[0].request.toolbox
        examples = {question_key(tool.example.query) for tool in box if tool.example}
        assert examples.isdisjoint(question_key(one.query.query) for one in members)
        for one in members:
            assert question_key(one.query.query) not in {
                question_key(shot.query) for shot in one.plan_cases
            }


def test_records_with_extra_tools_share_some_but_not_all_toolboxes(
    sixteen: list[Any],
) -> None:
    adding = [sum(bool(one.query.record.tools_extra) for one in m) for _, m, _ in sixteen]
    assert max(adding) > 1
    assert max(adding) <= MAX_LEADERS
    assert 0 in adding


def test_shared_toolbox_lacks_tools_that_a_member_record_removes() -> None:
    rows = [("hello there", "s1 = no_evidence()", ["desk"])] * 30
    rows += [("hello you", "s1 = no_evidence()", [])] * 30
    queries = [
        AnnotatedQuery.read({"id": f"r{n}", "query": text, "plan": plan, "tools_removed": gone})
        for n, (text, plan, gone) in enumerate(rows)
    ]
    found = groups(8, queries)
    mixed = 0
    for _, members, _ in found:
        removing = [bool(one.query.record.tools_removed) for one in members]
        mixed += len(set(removing)) == 2
        if any(removing):
            assert "desk" not in members[0].request.toolbox
    # A toolbox that lacks the tool by the draw will do as well.
    assert mixed


def test_question_that_may_need_an_added_tool_does_not_get_it() -> None:
    def query_with(name: str, query: str, tool: str = "", said: str = "") -> AnnotatedQuery:
        extra = [{"name": tool, "parameters": {}, "description": said}] if tool else []
        plan = f"s1 = {tool or 'no_evidence'}()"
        record = {"id": name, "query": query, "plan": plan, "tools_extra": extra}
        return AnnotatedQuery.read(record)

    basket = query_with("basket", "what lies in my basket", "basket", "Shows the basket.")
    twin = query_with("twin", "read me the cart", "show_cart", "Shows the basket.")
    tide = query_with("tide", "when do waves come", "tide", "Tells about surf.")
    near = query_with("near", "is the basket full")
    far = query_with("far", "good morning")
    added = AddedTools([basket, twin, tide, near, far], ENCODER)
    assert not added.may_see(near, [tide, basket])
    assert added.may_see(near, [tide])
    assert added.may_see(far, [basket, tide])
    assert added.may_join(tide, [basket])
    assert not added.may_join(twin, [basket])
    # Where nobody adds a tool there is nothing to embed.
    quiet = HashingEncoder()
    assert AddedTools([near, far], quiet).may_see(near, [far])
    assert quiet.calls == []


def test_one_query_per_toolbox_gives_the_same_examples_as_evolve() -> None:
    """One a toolbox is what sets were made of before toolboxes were shared, byte for byte."""
    settings, ttg = TevoSettings(), TtgSettings(tasks_per_query=3)
    found = make_set(1)
    held = {example.source for example in found.validation}
    neighbours = Neighbours([q for q in QUERIES if str(q.record.id) not in held], ENCODER)
    wanted = {}
    for query in QUERIES:
        for copy in (1, 2):
            rng = random.Random(f"0:{query.record.id}:{copy}")
            one = evolve(query, SHOP, settings, POOLS, neighbours, rng)
            for example in task_examples(one, ttg, rng):
                name = example.id if copy == 1 else f"{example.id}@{copy}"
                wanted[name] = replace(example, id=name)
    assert {one.id: one for one in found.examples}.items() <= wanted.items()
    assert len(found.examples) > 0.95 * len(wanted)


def test_same_seed_gives_the_same_training_set_with_shared_toolboxes(shared: TrainingSet) -> None:
    again = make_set(16)
    assert lines(again.train) == lines(shared.train)
    assert again == shared


def test_shared_toolboxes_do_not_depend_on_the_order_of_queries(sixteen: list[Any]) -> None:
    def prompts_of(found: list[Any]) -> list[Any]:
        return [(copy, [str(render_prompt(one.request)) for one in m]) for copy, m, _ in found]

    assert prompts_of(groups(16, QUERIES[::-1])) == prompts_of(sixteen)
    assert prompts_of(groups(16, seed=1)) != prompts_of(sixteen)


def test_prompt_heads_are_not_shared_between_training_and_validation(shared: TrainingSet) -> None:
    serving = {render_prompt(query.record.request(SHOP)).head for query in QUERIES}
    sides = [
        {one.prompt.head for one in side if one.task == "plan"} - serving
        for side in (shared.train, shared.validation)
    ]
    assert sides[0].isdisjoint(sides[1])
    # Secondary tasks that ask for a plan have the same head.
    heads = Counter(one.prompt.head for one in shared.train)
    assert max(heads.values()) > 16
