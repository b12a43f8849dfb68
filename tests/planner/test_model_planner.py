"""A planner with a local model writes valid plans, or returns a fallback plan with a reason."""

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
from tests.planner.helpers import SHOP, make_queries
from tests.support.encoders import HashingEncoder
from tests.support.tiny_mistral import tiny_mistral

QUESTION = "How heavy is the wool tent that I bought?"


@pytest.fixture(scope="module")
def mistral() -> LanguageModel:
    return tiny_mistral(3, initializer_range=0.3)


@pytest.fixture(scope="module")
def plan_cases() -> CaseStore:
    return plan_store(make_queries(), HashingEncoder(128))


def plan_request(
    question: str = QUESTION, toolbox: Toolbox = SHOP, max_steps: int = 3
) -> PlanRequest:
    return PlanRequest(question, toolbox, {"product_id": "p1"}, max_steps=max_steps)


def test_model_planner_returns_a_valid_plan_with_its_name_and_token_counts(
    mistral: LanguageModel,
) -> None:
    result = ModelPlanner(mistral).plan(plan_request())
    plan_request().validate(result.plan)
    assert result.planner == f"model:{mistral.name}"
    assert (result.fallback, result.attempts) == ("", 1)
    assert result.milliseconds > 0
    prompt = mistral.encode(render_prompt(plan_request()))
    assert result.tokens["input"] == len(prompt.head) + len(prompt.tail)
    assert 0 < result.tokens["forced"] < result.tokens["output"]
    assert result.tokens["model_steps"] <= result.tokens["output"] - result.tokens["forced"] + 1


def test_earlier_questions_do_not_change_the_plan_of_a_model_planner(
    mistral: LanguageModel,
) -> None:
    first = ModelPlanner(mistral).plan(plan_request())
    planner = ModelPlanner(mistral)
    planner.plan(plan_request("Where is my parcel?"))
    planner.plan(plan_request("Where is my parcel?", SHOP.without("find")))
    assert planner.plan(plan_request()).plan == first.plan


def test_model_planner_uses_the_fallback_planner_after_its_deadline(
    mistral: LanguageModel, shop_planner: CasePlanner
) -> None:
    planner = ModelPlanner(mistral, fallback=shop_planner, seconds=0)
    started = time.perf_counter()
    result = planner.plan(plan_request("do you sell wool socks"))
    assert time.perf_counter() - started < 5
    assert result.planner == shop_planner.name
    assert "The plan was not finished in time" in result.fallback
    assert str(result.plan) == 's1 = find(query="wool socks")'
    assert result.attempts == 2


def test_model_planner_uses_the_fallback_plan_beyond_its_token_limit(
    mistral: LanguageModel,
) -> None:
    result = ModelPlanner(mistral, tokens=3).plan(plan_request())
    assert "within 3 tokens" in result.fallback
    assert str(result.plan) == "s1 = find(query=question)"


def test_model_planner_uses_the_fallback_plan_when_the_network_fails() -> None:
    broken = tiny_mistral(3)
    broken.network.model.embed_tokens = torch.nn.Embedding(8, 32)
    result = ModelPlanner(broken).plan(plan_request())
    assert result.fallback.startswith(f"model:{broken.name}: It failed: IndexError")
    plan_request().validate(result.plan)


def test_model_planner_with_nan_weights_writes_a_valid_plan() -> None:
    broken = tiny_mistral(3)
    broken.network.lm_head.weight.data.fill_(float("nan"))
    result = ModelPlanner(broken).plan(plan_request())
    assert not result.fallback
    plan_request().validate(result.plan)


def test_model_planner_prompt_contains_the_requested_number_of_plan_cases(
    mistral: LanguageModel, plan_cases: CaseStore
) -> None:
    for count in (0, 1, 3):
        planner = ModelPlanner(mistral, plan_cases=plan_cases, examples=count)
        examples = similar_plans(plan_cases, plan_request(), count)
        assert len(examples) == count
        prompt = mistral.encode(render_prompt(plan_request(), examples))
        assert planner.plan(plan_request()).tokens["input"] == len(prompt.head) + len(prompt.tail)


def test_plan_cases_beyond_the_context_length_of_the_model_are_omitted(
    plan_cases: CaseStore,
) -> None:
    bare = tiny_mistral(3).encode(render_prompt(plan_request()))
    length = len(bare.head) + len(bare.tail)
    narrow = tiny_mistral(3, max_position_embeddings=length + 420)
    planner = ModelPlanner(narrow, plan_cases=plan_cases, examples=14, tokens=400)
    result = planner.plan(plan_request(max_steps=1))
    assert not result.fallback
    assert length <= result.tokens["input"] <= length + 20


def test_similar_plans_prefers_better_quality_with_a_low_lambda_b() -> None:
    rows = make_queries()
    store = plan_store([], HashingEncoder(128))
    best_row = len(rows) - 1
    cases = [replace(plan_case(row), quality=float(i == best_row)) for i, row in enumerate(rows)]
    store.add(cases)
    best = similar_plans(store, plan_request(), 1, MarginalSelector(lambda_b=0.1))
    assert best[0].query == rows[best_row].query
    nearest = similar_plans(store, plan_request(), 1, MarginalSelector(lambda_b=1.0))
    assert nearest[0].query == "how heavy is my old tent"


def test_similar_plans_ignores_quality_by_default() -> None:
    cases = [plan_case(row) for row in make_queries()]
    for encoder in (HashingEncoder(128), HashingEncoder(512)):
        plain, up, down = (CaseStore(plan_schema(encoder), ":memory:") for _ in range(3))
        plain.add(cases)
        for store, order in ((up, 1), (down, -1)):
            store.add([replace(c, quality=float(n % 2)) for n, c in enumerate(cases[::order])])
        for k in range(1, 6):
            expected = similar_plans(plain, plan_request(), k)
            assert (
                similar_plans(up, plan_request(), k)
                == similar_plans(down, plan_request(), k)
                == expected
            )


def test_model_planner_aplan_gives_the_same_plan_as_plan(mistral: LanguageModel) -> None:
    planner = ModelPlanner(mistral)
    assert asyncio.run(planner.aplan(plan_request())).plan == planner.plan(plan_request()).plan


def test_plan_many_returns_plans_in_order_for_different_toolboxes(mistral: LanguageModel) -> None:
    planner = ModelPlanner(mistral, batch=2)
    toolboxes = [SHOP, SHOP.without("find"), SHOP, SHOP.without("own"), SHOP]
    requests = [plan_request(f"{QUESTION} {n}", toolbox) for n, toolbox in enumerate(toolboxes)]
    results = planner.plan_many(requests)
    assert [result.plan for result in results] == [planner.plan(r).plan for r in requests]
    for request, result in zip(requests, results, strict=True):
        validate_plan(
            result.plan,
            request.toolbox,
            question=request.question,
            context=request.context,
            max_steps=request.max_steps,
        )


def test_model_planner_continues_a_plan_after_its_fixed_steps() -> None:
    model = tiny_mistral(5, initializer_range=0.3)
    plan = parse_plan('s1 = find(query="wool tent")')
    failed = parse_plan('s1 = find(query="tent")').steps[0]
    request = replace(plan_request(max_steps=4), fixed=plan, failures={failed: "found nothing"})
    result = ModelPlanner(model).plan(request)
    request.validate(result.plan)
    assert (result.planner, result.fallback) == (f"model:{model.name}", "")
    assert result.plan.steps[:1] == plan.steps
    assert len(result.plan.steps) > 1
    batch = ModelPlanner(model).plan_many([request, request])
    assert [other.plan for other in batch] == [result.plan] * 2


def test_prompt_lists_failed_calls_only_if_there_are_any() -> None:
    request = plan_request()
    step = parse_plan("s1 = find(query=question)").steps[0]
    mended = replace(request, failures={step: "found nothing"})
    parts = render_prompt(mended).tail.split("\n\n")
    assert [part for part in parts if part not in render_prompt(request).tail.split("\n\n")] == [
        "Already called, without results, and not to be called again:\n"
        "- find(query=question): found nothing"
    ]
