from __future__ import annotations

import asyncio
from typing import Any

import pytest

from casewright.planner import (
    CasePlanner,
    Literal,
    PlanRequest,
    PlanResult,
    QueryRecord,
    is_span,
)
from casewright.tools import Toolbox, ToolExample, ToolSpec, tool_from_function
from tests.planner.helpers import ROWS, SHOP, annotated, case_planner, parameter


def planned(
    planner: CasePlanner, question: str, toolbox: Toolbox = SHOP, **context: Any
) -> PlanResult:
    request = PlanRequest(question, toolbox, context)
    result = planner.plan(request)
    request.validate(result.plan)
    assert result.planner == "case"
    assert result.attempts >= 1
    assert result.milliseconds > 0
    return result


@pytest.mark.parametrize(("question", "plan", "context"), ROWS)
def test_the_question_of_a_case_gets_the_plan_of_that_case(
    shop_planner: CasePlanner, question: str, plan: str, context: dict[str, Any]
) -> None:
    result = planned(shop_planner, question, **context)
    assert str(result.plan) == plan
    assert result.fallback == ""


@pytest.mark.parametrize(
    ("question", "context", "plan"),
    [
        ("do you sell paper lanterns", {}, 's1 = find(query="paper lanterns")'),
        ("Do you sell Paper Lanterns?", {}, 's1 = find(query="Paper Lanterns")'),
        (
            "how heavy is my kayak",
            {},
            's1 = own(query="kayak")\ns2 = fact(item_id=s1.item_id, query=question)',
        ),
        ("can I return the wrong size", {}, "s1 = desk(query=question)"),
        (
            "is it foldable",
            {"product_id": "p9"},
            "s1 = fact(item_id=context.product_id, query=question)",
        ),
        ("hello and good evening", {}, "s1 = no_evidence()"),
    ],
)
def test_a_new_question_gets_a_similar_cases_plan_with_its_own_words(
    shop_planner: CasePlanner, question: str, context: dict[str, Any], plan: str
) -> None:
    assert str(planned(shop_planner, question, **context).plan) == plan


@pytest.mark.parametrize("thing", ["umbrella", "blue garden hose", "Käsehobel", "x-200 drill"])
def test_the_literals_of_a_plan_are_spans_of_the_new_question(
    shop_planner: CasePlanner, thing: str
) -> None:
    question = f"do you sell {thing}"
    plan = planned(shop_planner, question).plan
    literals = [v for step in plan.steps for _, v in step.arguments if isinstance(v, Literal)]
    assert [value.value for value in literals] == [thing]
    assert all(is_span(str(value.value), question) for value in literals)


@pytest.mark.parametrize(("question", "plan", "context"), ROWS[:12])
def test_cases_that_use_absent_tools_are_left_out(
    shop_planner: CasePlanner, question: str, plan: str, context: dict[str, Any]
) -> None:
    absent = plan.split(" = ")[1].split("(")[0]
    result = planned(shop_planner, question, SHOP.without(absent), **context)
    assert absent not in result.plan.tools


@pytest.mark.parametrize("context", [{}, {"product_id": None}, {"page": "home"}])
def test_cases_that_need_an_absent_context_are_left_out(
    shop_planner: CasePlanner, context: dict[str, Any]
) -> None:
    assert "context." in str(planned(shop_planner, "is it waterproof", product_id="p1").plan)
    assert "context." not in str(planned(shop_planner, "is it waterproof", **context).plan)


def test_the_example_of_a_tool_that_no_case_knows_is_a_case(shop_planner: CasePlanner) -> None:
    extra = {
        "name": "store_locator",
        "parameters": {"town": "Which town."},
        "results": ["address"],
        "description": "Finds the nearest shop.",
        "example": {
            "query": "where is the nearest shop in Bonn",
            "plan": 's1 = store_locator(town="Bonn")',
        },
    }
    record = {"query": "where is the nearest shop in Kiel", "tools_extra": [extra]}
    request = QueryRecord.read(record).request(SHOP)
    assert str(shop_planner.plan(request).plan) == 's1 = store_locator(town="Kiel")'
    assert "store_locator" not in planned(shop_planner, request.question).plan.tools
    other = PlanRequest("do you sell wool socks", request.toolbox)
    assert shop_planner.plan(other).plan.tools == ("find",)


@pytest.mark.parametrize(
    "plan",
    ["not a plan", "s1 = gone()", "s1 = odd(x=s1.a)", "s1 = odd(x=context.gone)", "s1 = odd(y=1)"],
)
def test_an_unusable_example_of_a_tool_does_no_harm(shop_planner: CasePlanner, plan: str) -> None:
    odd = ToolSpec("odd", "", (parameter("x", "literal"),), example=ToolExample("very odd", plan))
    assert "odd" not in planned(shop_planner, "very odd", SHOP.with_(odd)).plan.tools


def test_an_enumerated_literal_of_a_case_stays_what_it_is() -> None:
    alerts = ToolSpec("alerts", "Alerts.", (parameter("level", choices=("high", "low")),))
    queries = annotated([("anything urgent going on", 's1 = alerts(level="high")', {})])
    box = Toolbox([alerts])
    result = planned(case_planner(queries), "anything urgent today in town", box)
    assert str(result.plan) == 's1 = alerts(level="high")'
    assert result.fallback == ""


def owners() -> CasePlanner:
    """A planner whose only case needs the tool ``own``."""
    return case_planner(annotated([("is my red boat old", 's1 = own(query="red boat")', {})]))


def test_without_a_usable_case_it_falls_back_and_says_why() -> None:
    other = ToolSpec("other", "Another.", (parameter("text", "question"),))
    result = planned(owners(), "is my red boat old", Toolbox([other]))
    assert str(result.plan) == "s1 = other(text=question)"
    assert "No plan case" in result.fallback


def test_the_fallback_says_what_was_wrong_with_the_last_plan_tried() -> None:
    result = planned(owners(), "is my red boat old", Toolbox([ToolSpec("own", "")]))
    assert str(result.plan) == "s1 = no_evidence()"
    assert "own has no parameter query" in result.fallback
    assert result.attempts == 2


def test_without_any_case_or_tool_the_plan_looks_nothing_up() -> None:
    assert str(planned(case_planner([]), "is it red", Toolbox([])).plan) == "s1 = no_evidence()"


def test_the_fallback_is_valid_where_the_question_does_not_fit_a_parameter() -> None:
    def paint(colours: list[str]) -> str:
        """Paints."""
        return str(colours)

    result = planned(owners(), "is my red boat old", Toolbox([tool_from_function(paint)]))
    assert str(result.plan) == "s1 = no_evidence()"


@pytest.mark.parametrize("reference", ["s9.item_id", "s2.item_id"])
def test_a_case_that_refers_past_its_last_step_does_no_harm(reference: str) -> None:
    broken = ("how heavy is it", f"s1 = fact(item_id={reference}, query=question)", {})
    planner = case_planner(annotated([broken, *ROWS]))
    assert reference not in str(planned(planner, "how heavy is it").plan)


def test_equal_cases_in_any_order_give_equal_plans() -> None:
    planners = [case_planner(annotated(rows)) for rows in (ROWS, ROWS[::-1])]
    for question in ("do you sell a lamp", "is it", "hello", "how old is my return"):
        results = [planned(planner, question).plan for planner in planners * 2]
        assert len(set(map(str, results))) == 1


def test_the_async_twin_gives_the_same_plan(shop_planner: CasePlanner) -> None:
    request = PlanRequest("do you sell paper lanterns", SHOP)
    result = asyncio.run(shop_planner.aplan(request))
    assert result.plan == shop_planner.plan(request).plan
