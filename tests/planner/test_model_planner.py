"""A planner with a local model: valid plans, or a fallback plan with the reason."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
import torch

from casewright.planner import (
    CasePlanner,
    ModelPlanner,
    PlanRequest,
    parse_plan,
    plan_store,
    render_prompt,
    validate_plan,
)
from casewright.planner.language_model import LanguageModel
from casewright.planner.plan_cases import plan_case, plan_schema, similar_plans
from casewright.stores import CaseStore, MarginalSelector
from casewright.tools import Toolbox
from tests.planner.helpers import SHOP, annotated
from tests.support.encoders import HashingEncoder
from tests.support.tiny_mistral import tiny_mistral

QUESTION = "How heavy is the wool tent that I bought?"


@pytest.fixture(scope="module")
def mistral() -> LanguageModel:
    return tiny_mistral(3, initializer_range=0.3)


@pytest.fixture(scope="module")
def plan_cases() -> CaseStore:
    return plan_store(annotated(), HashingEncoder(128))


def asked(question: str = QUESTION, toolbox: Toolbox = SHOP, max_steps: int = 3) -> PlanRequest:
    return PlanRequest(question, toolbox, {"product_id": "p1"}, max_steps=max_steps)


def test_a_plan_is_valid_and_says_who_wrote_it_and_what_it_took(mistral: LanguageModel) -> None:
    result = ModelPlanner(mistral).plan(asked())
    asked().validate(result.plan)
    assert result.planner == f"model:{mistral.name}"
    assert (result.fallback, result.attempts) == ("", 1)
    assert result.milliseconds > 0
    prompt = mistral.encode(render_prompt(asked()))
    assert result.tokens["input"] == len(prompt.head) + len(prompt.tail)
    assert 0 < result.tokens["forced"] < result.tokens["output"]
    assert result.tokens["model_steps"] <= result.tokens["output"] - result.tokens["forced"] + 1
    assert mistral.encode_plan(str(result.plan))


def test_the_same_question_gets_the_same_plan_whatever_was_asked_before(
    mistral: LanguageModel,
) -> None:
    first = ModelPlanner(mistral).plan(asked())
    planner = ModelPlanner(mistral)
    planner.plan(asked("Where is my parcel?"))
    planner.plan(asked("Where is my parcel?", SHOP.without("find")))
    assert planner.plan(asked()).plan == first.plan


def test_a_deadline_yields_the_fallback_plan_with_the_reason(
    mistral: LanguageModel, shop_planner: CasePlanner
) -> None:
    planner = ModelPlanner(mistral, fallback=shop_planner, seconds=0)
    started = time.perf_counter()
    result = planner.plan(asked("do you sell wool socks"))
    assert time.perf_counter() - started < 5
    assert result.planner == shop_planner.name
    assert "The plan was not finished in time" in result.fallback
    assert str(result.plan) == 's1 = find(query="wool socks")'
    assert result.attempts == 2


def test_a_plan_with_too_many_tokens_yields_the_fallback_plan(mistral: LanguageModel) -> None:
    result = ModelPlanner(mistral, tokens=3).plan(asked())
    assert "within 3 tokens" in result.fallback
    assert str(result.plan) == "s1 = find(query=question)"


def test_a_network_that_fails_yields_the_fallback_plan() -> None:
    broken = tiny_mistral(3)
    broken.network.model.embed_tokens = torch.nn.Embedding(8, 32)
    result = ModelPlanner(broken).plan(asked())
    assert result.fallback.startswith(f"model:{broken.name}: It failed: IndexError")
    asked().validate(result.plan)


def test_weights_that_are_not_numbers_still_write_a_valid_plan() -> None:
    broken = tiny_mistral(3)
    broken.network.lm_head.weight.data.fill_(float("nan"))
    result = ModelPlanner(broken).plan(asked())
    assert not result.fallback
    asked().validate(result.plan)


def test_plan_cases_stand_in_the_prompt_as_many_as_asked_for(
    mistral: LanguageModel, plan_cases: CaseStore
) -> None:
    for count in (0, 1, 3):
        planner = ModelPlanner(mistral, plan_cases=plan_cases, examples=count)
        shown = similar_plans(plan_cases, asked(), count)
        assert len(shown) == count
        prompt = mistral.encode(render_prompt(asked(), shown))
        assert planner.plan(asked()).tokens["input"] == len(prompt.head) + len(prompt.tail)


def test_plan_cases_that_the_model_has_no_room_for_are_left_out(plan_cases: CaseStore) -> None:
    bare = tiny_mistral(3).encode(render_prompt(asked()))
    length = len(bare.head) + len(bare.tail)
    narrow = tiny_mistral(3, max_position_embeddings=length + 420)
    planner = ModelPlanner(narrow, plan_cases=plan_cases, examples=14, tokens=400)
    result = planner.plan(asked(max_steps=1))
    assert not result.fallback
    assert length <= result.tokens["input"] <= length + 20


def test_a_plan_case_of_better_quality_is_preferred_where_quality_counts() -> None:
    rows = annotated()
    store = plan_store([], HashingEncoder(128))
    good = len(rows) - 1
    cases = [replace(plan_case(row), quality=float(at == good)) for at, row in enumerate(rows)]
    store.add(cases)
    liked = similar_plans(store, asked(), 1, MarginalSelector(lambda_b=0.1))
    assert liked[0].query == rows[good].query
    nearest = similar_plans(store, asked(), 1, MarginalSelector(lambda_b=1.0))
    assert nearest[0].query == "how heavy is my old tent"


def test_quality_that_nobody_asked_to_weigh_has_no_say() -> None:
    cases = [plan_case(row) for row in annotated()]
    for encoder in (HashingEncoder(128), HashingEncoder(512)):
        plain, up, down = (CaseStore(plan_schema(encoder), ":memory:") for _ in range(3))
        plain.add(cases)
        for store, order in ((up, 1), (down, -1)):
            store.add([replace(c, quality=float(n % 2)) for n, c in enumerate(cases[::order])])
        for k in range(1, 6):
            picked = similar_plans(plain, asked(), k)
            assert similar_plans(up, asked(), k) == similar_plans(down, asked(), k) == picked


def test_the_asynchronous_form_writes_the_same_plan(mistral: LanguageModel) -> None:
    planner = ModelPlanner(mistral)
    assert asyncio.run(planner.aplan(asked())).plan == planner.plan(asked()).plan


def test_plans_for_many_come_in_order_each_for_its_own_toolbox(mistral: LanguageModel) -> None:
    planner = ModelPlanner(mistral, batch=2)
    boxes = [SHOP, SHOP.without("find"), SHOP, SHOP.without("own"), SHOP]
    requests = [asked(f"{QUESTION} {number}", box) for number, box in enumerate(boxes)]
    results = planner.plan_many(requests)
    assert [result.plan for result in results] == [planner.plan(one).plan for one in requests]
    for request, result in zip(requests, results, strict=True):
        validate_plan(
            result.plan,
            request.toolbox,
            question=request.question,
            context=request.context,
            max_steps=request.max_steps,
        )


def test_the_rest_of_a_plan_is_written_behind_what_has_run_under_the_same_grammar() -> None:
    model = tiny_mistral(5, initializer_range=0.3)
    plan = parse_plan('s1 = find(query="wool tent")')
    failed = parse_plan('s1 = find(query="tent")').steps[0]
    rest = replace(asked(max_steps=4), fixed=plan, failures={failed: "found nothing"})
    result = ModelPlanner(model).plan(rest)
    rest.validate(result.plan)
    assert (result.planner, result.fallback) == (f"model:{model.name}", "")
    assert result.plan.steps[:1] == plan.steps
    assert len(result.plan.steps) > 1
    together = ModelPlanner(model).plan_many([rest, rest])
    assert [each.plan for each in together] == [result.plan] * 2


def test_the_prompt_of_a_first_plan_says_nothing_of_calls_before() -> None:
    request = asked()
    step = parse_plan("s1 = find(query=question)").steps[0]
    again = replace(request, failures={step: "found nothing"})
    told = render_prompt(again).tail.split("\n\n")
    assert [part for part in told if part not in render_prompt(request).tail.split("\n\n")] == [
        "Already called, without results, and not to be called again:\n"
        "- find(query=question): found nothing"
    ]
