from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from casewright.finetune.examples.tevo import TevoSettings, VariedQuery
from casewright.finetune.neighbours import Neighbours, question_key
from casewright.finetune.tool_pools import ParameterPool, ToolPool
from casewright.planner import AnnotatedQuery, PlanRequest, render_prompt
from casewright.tools import Toolbox, ToolExample, ToolSpec
from tests.planner.helpers import DESK_PLAN, FACT, FIND, SHOP, make_queries
from tests.support.encoders import HashingEncoder
from tests.support.training_examples import evolve

QUERIES = make_queries()
NEIGHBOURS = Neighbours(QUERIES, HashingEncoder(256))
POOLS = {
    "find": ToolPool(names=("seek", "search_shop"), descriptions=("Searches for products.",)),
    "own": ToolPool(
        names=("mine",),
        parameters={"query": ParameterPool(names=("words",), descriptions=("what it is",))},
        results={"item_id": ("sku",)},
    ),
    "fact": ToolPool(names=("tell",), descriptions=("What is known of a product.",)),
}
#: Settings that change everything that can be changed.
MAXIMAL = TevoSettings(
    unchanged=0, rename_tools=1, rename_parameters=1, rename_results=1, reword=1, no_example=0
)
OFF = TevoSettings(enabled=False, shots=0)


def vary(
    query: AnnotatedQuery,
    settings: TevoSettings = MAXIMAL,
    seed: int = 0,
    toolbox: Toolbox = SHOP,
    **options: Any,
) -> VariedQuery:
    return evolve(query, toolbox, settings, POOLS, NEIGHBOURS, random.Random(seed), **options)


def gold(query: str, plan: str, **fields: Any) -> AnnotatedQuery:
    return AnnotatedQuery.read({"id": "x", "query": query, "plan": plan, **fields})


def test_disabled_tevo_gives_the_prompt_used_in_serving() -> None:
    for query in QUERIES:
        variant = vary(query, OFF)
        request = query.record.request(SHOP)
        assert render_prompt(variant.request, variant.plan_cases) == render_prompt(request)
        assert variant.plan == query.plan


def test_tevo_varies_plan_cases_even_in_an_unchanged_prompt() -> None:
    settings = TevoSettings(unchanged=1, shots=3)
    variants = [vary(QUERIES[0], settings, seed) for seed in range(30)]
    assert {render_prompt(variant.request).head for variant in variants} == {
        render_prompt(QUERIES[0].record.request(SHOP)).head
    }
    assert {len(variant.plan_cases) for variant in variants} == {0, 1, 2, 3}


def test_tevo_renames_gold_plan_tools_and_plan_cases_consistently() -> None:
    variant = vary(QUERIES[3])
    assert str(variant.plan) == (
        's1 = mine(words="old tent")\ns2 = tell(item_id=s1.sku, query=question)'
    )
    mine = variant.request.toolbox["mine"]
    assert mine.signature() == "mine(words: span | question) -> sku, title"
    assert mine.parameters[0].description == "what it is"
    assert variant.request.toolbox["tell"].description == "What is known of a product."
    texts = [shot.plan for seed in range(20) for shot in vary(QUERIES[3], seed=seed).plan_cases]
    assert any("mine(words=" in text for text in texts)
    assert not any("own(" in text or "fact(" in text for text in texts)


def test_tevo_keeps_needed_tools_and_may_drop_any_others() -> None:
    remaining = Counter[frozenset[str]]()
    settings = TevoSettings(
        unchanged=0, drop_tools=1, rename_tools=0, rename_parameters=0, rename_results=0
    )
    for seed in range(200):
        names = vary(QUERIES[3], settings, seed).request.toolbox.names
        assert {"own", "fact", "no_evidence"} <= set(names)
        remaining[frozenset(names) - {"own", "fact", "no_evidence"}] += 1
    assert set(map(tuple, map(sorted, remaining))) == {(), ("find",), ("desk",), ("desk", "find")}


def test_tevo_shuffles_tools_and_keeps_no_evidence_last() -> None:
    settings = TevoSettings(unchanged=0, drop_tools=0, rename_tools=0)
    orders = {vary(QUERIES[3], settings, seed).request.toolbox.names for seed in range(60)}
    assert len(orders) > 15
    assert {order[-1] for order in orders} == {"no_evidence"}


def test_tevo_keeps_extra_and_removed_tools_of_the_record() -> None:
    extra = {"name": "rent", "parameters": {"item_id": ""}, "results": ["evidence"]}
    query = gold(
        "what is the rent of a tent",
        's1 = find(query="tent")\ns2 = rent(item_id=s1.item_id)',
        tools_extra=[extra],
        tools_removed=["own"],
    )
    for seed in range(20):
        variant = vary(query, seed=seed)
        variant.request.validate(variant.plan)
        assert variant.plan.tools[1] == "rent"
        assert "mine" not in variant.request.toolbox
        assert "own" not in variant.request.toolbox


def test_tevo_renames_an_extra_tool_that_has_a_pool() -> None:
    extra = {"name": "rent", "parameters": {"item_id": ""}, "results": ["evidence"]}
    query = gold("rent?", "s1 = rent(item_id=context.p)", context={"p": "1"}, tools_extra=[extra])
    pools = {"rent": ToolPool(names=("hire",))}
    variant = evolve(query, SHOP, MAXIMAL, pools, None, random.Random(0))
    variant.request.validate(variant.plan)
    assert str(variant.plan) == "s1 = hire(item_id=context.p)"


def test_tevo_omits_an_example_that_calls_an_absent_tool() -> None:
    plan = 's1 = find(query="lamp")\ns2 = fact(item_id=s1.item_id, query=question)'
    example = ToolExample("how old is the lamp", plan)
    box = Toolbox([FIND, replace(FACT, example=example)])
    query = gold("is it heavy", "s1 = fact(item_id=context.p, query=question)", context={"p": "1"})
    settings = TevoSettings(unchanged=0, drop_tools=1, no_example=0, examples=0, rename_tools=0)
    pairs = set()
    for seed in range(20):
        drawn = evolve(query, box, settings, {}, None, random.Random(seed))
        pairs.add(("find" in drawn.request.toolbox, drawn.request.toolbox["fact"].example is None))
    assert pairs == {(True, False), (False, True)}


def test_tevo_examples_are_queries_that_use_that_tool_alone() -> None:
    settings = TevoSettings(unchanged=0, examples=1, no_example=0, rename_tools=0, drop_tools=0)
    for seed in range(30):
        variant = vary(QUERIES[3], settings, seed)
        desk = variant.request.toolbox["desk"].example
        assert desk is not None
        assert desk.plan == DESK_PLAN
        assert desk.query in {query.query for query in QUERIES if "desk" in query.plan.tools}


def test_tevo_may_omit_all_examples() -> None:
    settings = TevoSettings(unchanged=0, no_example=1)
    assert all(tool.example is None for tool in vary(QUERIES[0], settings).request.toolbox)


def test_tevo_never_shows_the_question_itself_in_any_case_or_punctuation() -> None:
    twin = gold(QUERIES[0].query.upper() + "?!", str(QUERIES[0].plan))
    neighbours = Neighbours([*QUERIES, twin], HashingEncoder(256))
    settings = TevoSettings(unchanged=0, examples=1, shots=8, random_shots=0.5)
    for seed in range(50):
        variant = evolve(QUERIES[0], SHOP, settings, {}, neighbours, random.Random(seed))
        texts = [tool.example.query for tool in variant.request.toolbox if tool.example]
        texts += [shot.query for shot in variant.plan_cases]
        assert question_key(QUERIES[0].query) not in map(question_key, texts)


def test_tevo_plan_cases_use_only_available_tools_and_context() -> None:
    settings = TevoSettings(unchanged=0, drop_tools=1, rename_tools=0, shots=8, random_shots=0.5)
    for query in QUERIES:
        for seed in range(10):
            variant = vary(query, settings, seed)
            for shot in variant.plan_cases:
                assert "context" not in shot.plan or variant.request.context
                assert not any(
                    f"{name}(" in shot.plan
                    for name in SHOP.names
                    if name not in variant.request.toolbox
                )


def drawn_cases(neighbours: Neighbours, question: str, count: int = 1) -> set[str]:
    """Return the questions of all plan cases in forty draws by similarity."""
    request = PlanRequest(question, SHOP, {"product_id": "p1"})
    draws = [neighbours.plan_cases(request, count, 0, random.Random(seed)) for seed in range(40)]
    return {case.query for cases in draws for case in cases}


def test_neighbours_draws_plan_cases_from_the_nearest_questions() -> None:
    questions = drawn_cases(NEIGHBOURS, "do you sell wool socks")
    assert len(questions) == 3
    assert any(query.startswith("do you sell") for query in questions)


def test_neighbours_finds_plan_cases_for_a_new_question() -> None:
    assert "can I return opened boxes" in drawn_cases(NEIGHBOURS, "may I return opened boxes")


def test_neighbours_never_shows_queries_with_a_changed_toolbox() -> None:
    removed = gold("do you sell tents", 's1 = find(query="tents")', tools_removed=["own"])
    neighbours = Neighbours([removed, *QUERIES], HashingEncoder(256))
    assert removed.query not in drawn_cases(neighbours, QUERIES[0].query, len(QUERIES))
    assert drawn_cases(neighbours, removed.query)


def test_tevo_without_neighbours_shows_no_plan_cases() -> None:
    empty = Neighbours([], HashingEncoder())
    for neighbours in (None, empty):
        variant = evolve(QUERIES[0], SHOP, MAXIMAL, POOLS, neighbours, random.Random(3))
        variant.request.validate(variant.plan)
        assert variant.plan_cases == ()


def test_tevo_may_add_distractor_tools_unless_their_name_clashes() -> None:
    tide = ToolSpec("tide", "The next high tide.")
    clash = ToolSpec("desk", "A desk to buy.")
    settings = TevoSettings(unchanged=0, distractors=2, rename_tools=0)
    toolboxes = [
        vary(QUERIES[0], settings, seed, distractors=[tide, clash]).request.toolbox
        for seed in range(30)
    ]
    assert {"tide" in toolbox for toolbox in toolboxes} == {True, False}
    assert all(toolbox["desk"] != clash for toolbox in toolboxes if "desk" in toolbox)


def test_tevo_keeps_a_tool_and_its_name_if_a_description_names_it() -> None:
    get_user = ToolSpec("get_user", "Who asks.", (), ("user_id",))
    points = replace(FACT, name="points", description="Points of a user; needs get_user first.")
    box = Toolbox([get_user, points, FIND])
    query = gold("points?", "s1 = points(item_id=context.p, query=question)", context={"p": "1"})
    pools = {"get_user": ToolPool(names=("who",))}
    for seed in range(20):
        variant = evolve(query, box, MAXIMAL, pools, None, random.Random(seed))
        assert "get_user" in variant.request.toolbox


@pytest.mark.parametrize("settings", [MAXIMAL, TevoSettings(), OFF], ids=["most", "default", "off"])
def test_tevo_gives_the_same_prompt_for_the_same_seed(settings: TevoSettings) -> None:
    for query in QUERIES:
        first, second = (vary(query, settings, seed=5) for _ in range(2))
        assert render_prompt(first.request, first.plan_cases) == render_prompt(
            second.request, second.plan_cases
        )
        assert first.plan == second.plan


@pytest.mark.parametrize(
    "setting", [{"reword": 1.5}, {"shots": -1}, {"rename": 0.5}, {"drop_tools": -0.1}], ids=str
)
def test_tevo_setting_out_of_bounds_or_unknown_is_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TevoSettings(**setting)
