from __future__ import annotations

from typing import Any

import pytest

from casewright.errors import InputError, PlanError
from casewright.planner import PlanRequest, parse_plan
from tests.planner.helpers import SHOP


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "question", ["?", "a" * 8000, "two\nlines\tand\rmore", "ünïcödé 😀 \u2028"]
)
def test_plan_request_accepts_long_multiline_and_unicode_questions(question: str) -> None:
    assert PlanRequest(question, SHOP).question == question


@pytest.mark.parametrize("question", [None, 5, b"text", ["text"]])
def test_plan_request_refuses_a_question_that_is_no_text(question: Any) -> None:
    with pytest.raises(InputError, match=type(question).__name__):
        PlanRequest(question, SHOP)


@pytest.mark.parametrize("question", ["", " ", "\n\t\r", "\u2003"])
def test_plan_request_refuses_an_empty_question(question: str) -> None:
    with pytest.raises(InputError, match="empty"):
        PlanRequest(question, SHOP)


def test_plan_request_refuses_a_question_above_8000_characters() -> None:
    with pytest.raises(InputError, match=r"8,001.*8,000"):
        PlanRequest("a" * 8001, SHOP)


@pytest.mark.parametrize("char", ["\0", "\x01", "\x1b", "\x08"])
def test_plan_request_refuses_control_characters_in_a_question(char: str) -> None:
    with pytest.raises(InputError, match="control"):
        PlanRequest(f"where is{char} it", SHOP)


def test_plan_request_refuses_a_question_with_a_lone_surrogate() -> None:
    with pytest.raises(InputError, match="Unicode"):
        PlanRequest("where \ud800 is it", SHOP)


@pytest.mark.parametrize(
    "context", [None, [], "page", [("a", 1)], {1: "a"}, {"a": object()}, {"a": {1}}]
)
def test_plan_request_refuses_a_context_that_is_no_json_object(context: Any) -> None:
    with pytest.raises(InputError, match="JSON object"):
        PlanRequest("where is it", SHOP, context)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_plan_request_refuses_nan_and_infinity_in_the_context(number: float) -> None:
    with pytest.raises(InputError, match="JSON object"):
        PlanRequest("where is it", SHOP, {"price": number})


@pytest.mark.parametrize("context", [{"a": "\ud800"}, {"\ud800": "a"}, {"a": ["\udc00"]}])
def test_plan_request_refuses_lone_surrogates_in_the_context(context: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        PlanRequest("where is it", SHOP, context)


def test_plan_request_refuses_a_context_that_contains_itself() -> None:
    context: dict[str, Any] = {}
    context["self"] = context
    with pytest.raises(InputError):
        PlanRequest("where is it", SHOP, context)


def test_plan_request_refuses_a_too_deeply_nested_context() -> None:
    with pytest.raises(InputError):
        PlanRequest("where is it", SHOP, nested(100_000))


def test_plan_request_accepts_any_json_values_in_the_context() -> None:
    context = {"page": "p1", "cart": [{"id": 1, "n": None}], "on": True, "price": 1.5}
    assert PlanRequest("where is it", SHOP, context).context == context


def test_plan_request_validates_with_its_question_context_toolbox_and_max_steps() -> None:
    plan = parse_plan(
        's1 = own(query="wool socks")\ns2 = fact(item_id=context.page, query=question)'
    )
    PlanRequest("my wool socks", SHOP, {"page": "p1"}).validate(plan)
    for request in (
        PlanRequest("my socks", SHOP, {"page": "p1"}),
        PlanRequest("my wool socks", SHOP, {"page": None}),
        PlanRequest("my wool socks", SHOP.without("fact"), {"page": "p1"}),
        PlanRequest("my wool socks", SHOP, {"page": "p1"}, max_steps=1),
    ):
        with pytest.raises(PlanError):
            request.validate(plan)
