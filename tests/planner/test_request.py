from __future__ import annotations

from typing import Any

import pytest

from casewright.errors import InputError, PlanError
from casewright.planner import PlanRequest, parse_plan
from tests.planner.helpers import SHOP


def nested(depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for _ in range(depth):
        made = {"a": made}
    return made


@pytest.mark.parametrize(
    "question", ["?", "a" * 8000, "two\nlines\tand\rmore", "ünïcödé 😀 \u2028"]
)
def test_what_a_person_types_is_a_question(question: str) -> None:
    assert PlanRequest(question, SHOP).question == question


@pytest.mark.parametrize("question", [None, 5, b"text", ["text"]])
def test_a_question_is_text(question: Any) -> None:
    with pytest.raises(InputError, match=type(question).__name__):
        PlanRequest(question, SHOP)


@pytest.mark.parametrize("question", ["", " ", "\n\t\r", "\u2003"])
def test_a_question_is_not_empty(question: str) -> None:
    with pytest.raises(InputError, match="empty"):
        PlanRequest(question, SHOP)


def test_a_question_is_not_too_long() -> None:
    with pytest.raises(InputError, match=r"8,001.*8,000"):
        PlanRequest("a" * 8001, SHOP)


@pytest.mark.parametrize("char", ["\0", "\x01", "\x1b", "\x08"])
def test_a_question_holds_no_control_characters(char: str) -> None:
    with pytest.raises(InputError, match="control"):
        PlanRequest(f"where is{char} it", SHOP)


def test_a_question_is_valid_unicode() -> None:
    with pytest.raises(InputError, match="Unicode"):
        PlanRequest("where \ud800 is it", SHOP)


@pytest.mark.parametrize(
    "context", [None, [], "page", [("a", 1)], {1: "a"}, {"a": object()}, {"a": {1}}]
)
def test_a_context_is_a_json_object(context: Any) -> None:
    with pytest.raises(InputError, match="JSON object"):
        PlanRequest("where is it", SHOP, context)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_context_holds_finite_numbers(number: float) -> None:
    with pytest.raises(InputError, match="JSON object"):
        PlanRequest("where is it", SHOP, {"price": number})


@pytest.mark.parametrize("context", [{"a": "\ud800"}, {"\ud800": "a"}, {"a": ["\udc00"]}])
def test_a_context_is_valid_unicode(context: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        PlanRequest("where is it", SHOP, context)


def test_a_context_that_holds_itself_is_refused() -> None:
    context: dict[str, Any] = {}
    context["self"] = context
    with pytest.raises(InputError):
        PlanRequest("where is it", SHOP, context)


def test_a_context_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(InputError):
        PlanRequest("where is it", SHOP, nested(100_000))


def test_a_context_may_hold_any_json() -> None:
    context = {"page": "p1", "cart": [{"id": 1, "n": None}], "on": True, "price": 1.5}
    assert PlanRequest("where is it", SHOP, context).context == context


def test_a_request_validates_with_its_own_question_context_and_budget() -> None:
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
