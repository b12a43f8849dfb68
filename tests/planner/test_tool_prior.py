"""The plan cases' prior over tools, and the plans of a model that leans on it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from casewright.errors import InputError
from casewright.planner import Literal, ModelPlanner, PlanRequest, parse_plan, plan_store
from casewright.planner.language_model import LanguageModel
from casewright.planner.spans import is_span
from casewright.planner.tool_prior import ToolPrior
from casewright.stores import CaseStore
from casewright.tools import Toolbox, ToolExample, ToolSpec
from tests.planner.helpers import FIND, ROWS, SHOP, annotated, parameter
from tests.support.encoders import HashingEncoder
from tests.support.tiny_mistral import tiny_mistral

RENT = ToolSpec(
    "rent",
    "Things that are lent for a day.",
    (parameter("query", "question", "literal", kind="string"),),
    example=ToolExample("can I borrow a ladder for a day", "s1 = rent(query=question)"),
)
#: So much that the model's logits do not count.
ALL = 1e4


@pytest.fixture(scope="module")
def mistral() -> LanguageModel:
    return tiny_mistral(3, initializer_range=0.3)


@pytest.fixture(scope="module")
def shop_plans() -> CaseStore:
    return plan_store(annotated(), HashingEncoder(256))


def asked(question: str, toolbox: Toolbox = SHOP, product: str | None = None) -> PlanRequest:
    context = {} if product is None else {"product_id": product}
    return PlanRequest(question, toolbox, context, max_steps=3)


def likeliest(store: CaseStore, request: PlanRequest) -> tuple[str, ...]:
    shares = ToolPrior(store).shares(request)
    return max(shares, key=lambda tools: shares[tools])


@pytest.mark.parametrize(("question", "plan", "context"), ROWS, ids=[row[0] for row in ROWS])
def test_a_known_question_s_tools_are_the_likeliest(
    question: str, plan: str, context: dict[str, str], shop_plans: CaseStore
) -> None:
    request = asked(question, product=context.get("product_id"))
    shares = ToolPrior(shop_plans).shares(request)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert max(shares, key=lambda tools: shares[tools]) == tuple(parse_plan(plan).tools)


def test_plans_that_cannot_be_run_here_have_no_share(shop_plans: CaseStore) -> None:
    known = ToolPrior(shop_plans)
    without = known.shares(asked("how heavy is my old tent", SHOP.without("own")))
    assert all("own" not in tools for tools in without)
    # No page is open: nothing to ask a fact of but a step before.
    assert ("fact",) not in known.shares(asked("is it heavy"))


def test_a_tool_that_no_case_calls_is_known_by_its_example(shop_plans: CaseStore) -> None:
    toolbox = SHOP.with_(RENT)
    assert likeliest(shop_plans, asked("can I borrow a ladder for a day", toolbox)) == ("rent",)
    assert likeliest(shop_plans, asked("do you sell wool socks", toolbox)) == ("find",)


def test_without_any_plan_case_tools_are_known_by_what_they_say() -> None:
    assert likeliest(plan_store([], HashingEncoder(256)), asked("I need a lamp")) == ("find",)


def test_a_heavy_prior_alone_decides_on_the_tools_of_each_question(
    mistral: LanguageModel, shop_plans: CaseStore
) -> None:
    planner = ModelPlanner(mistral, plan_cases=shop_plans, prior=ALL)
    requests = [asked(question, product=context.get("product_id")) for question, _, context in ROWS]
    results = planner.plan_many(requests)
    wanted = [list(parse_plan(plan).tools) for _, plan, _ in ROWS]
    assert [list(result.plan.tools) for result in results] == wanted


def test_a_prior_of_hardly_any_weight_changes_no_plan(
    mistral: LanguageModel, shop_plans: CaseStore
) -> None:
    requests = [asked(question) for question, _, _ in ROWS[:6]]
    plain = ModelPlanner(mistral, plan_cases=shop_plans).plan_many(requests)
    light = ModelPlanner(mistral, plan_cases=shop_plans, prior=1e-9).plan_many(requests)
    assert [one.plan for one in plain] == [one.plan for one in light]


def test_a_prior_needs_plan_cases(mistral: LanguageModel) -> None:
    with pytest.raises(InputError, match="plan_cases"):
        ModelPlanner(mistral, prior=1.0)


def test_with_spans_no_text_is_the_model_s_own(
    mistral: LanguageModel, shop_plans: CaseStore
) -> None:
    find = replace(FIND, parameters=(parameter("query", "literal", "span", kind="string"),))
    requests = [asked(question, Toolbox([find])) for question, _, _ in ROWS]
    texts = {}
    for spans in (False, True):
        planner = ModelPlanner(mistral, plan_cases=shop_plans, prior=ALL, spans=spans)
        texts[spans] = [
            is_span(str(value.value), request.question)
            for request, result in zip(requests, planner.plan_many(requests), strict=True)
            for step in result.plan.steps
            for _, value in step.arguments
            if isinstance(value, Literal)
        ]
        assert len(texts[spans]) > 3
    assert all(texts[True])
    assert not all(texts[False])


def test_with_spans_a_question_without_words_is_planned_for(mistral: LanguageModel) -> None:
    find = replace(FIND, parameters=(parameter("query", "literal", kind="string"),))
    result = ModelPlanner(mistral, spans=True).plan(asked("?!", Toolbox([find])))
    assert not result.fallback
