from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from casewright.planner import (
    CasePlanner,
    Literal,
    PlanRequest,
    PlanResult,
    QueryRecord,
)
from casewright.planner.parser_planner import REPEATED_CONFIDENCE
from casewright.tools import Toolbox, ToolExample, ToolSpec, tool_from_function
from tests.planner.helpers import OWN_PLAN, ROWS, SHOP, case_planner, make_queries, parameter


def result_of(
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
def test_case_planner_gives_the_question_of_a_plan_case_its_plan(
    shop_planner: CasePlanner, question: str, plan: str, context: dict[str, Any]
) -> None:
    result = result_of(shop_planner, question, **context)
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
def test_case_planner_fills_a_similar_plan_with_words_of_the_question(
    shop_planner: CasePlanner, question: str, context: dict[str, Any], plan: str
) -> None:
    assert str(result_of(shop_planner, question, **context).plan) == plan


@pytest.mark.parametrize("product", ["umbrella", "wool hats", "Käsehobel", "paper lanterns"])
def test_literals_of_a_case_planner_plan_are_spans_of_the_question(
    shop_planner: CasePlanner, product: str
) -> None:
    plan = result_of(shop_planner, f"do you sell {product}").plan
    literals = [v for step in plan.steps for _, v in step.arguments if isinstance(v, Literal)]
    assert [literal.value for literal in literals] == [product]


@pytest.mark.parametrize(("question", "plan", "context"), ROWS[:12])
def test_case_planner_calls_no_tool_that_was_removed_from_the_toolbox(
    shop_planner: CasePlanner, question: str, plan: str, context: dict[str, Any]
) -> None:
    removed = plan.split(" = ")[1].split("(")[0]
    result = result_of(shop_planner, question, SHOP.without(removed), **context)
    assert removed not in result.plan.tools


@pytest.mark.parametrize("context", [{}, {"product_id": None}])
def test_case_planner_uses_no_context_field_that_the_request_lacks(
    shop_planner: CasePlanner, context: dict[str, Any]
) -> None:
    assert "context." in str(result_of(shop_planner, "is it waterproof", product_id="p1").plan)
    assert "context." not in str(result_of(shop_planner, "is it waterproof", **context).plan)


def test_case_planner_uses_the_example_of_a_tool_that_no_case_calls(
    shop_planner: CasePlanner,
) -> None:
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
    assert "store_locator" not in result_of(shop_planner, request.question).plan.tools
    other = PlanRequest("do you sell wool socks", request.toolbox)
    assert shop_planner.plan(other).plan.tools == ("find",)


@pytest.mark.parametrize(
    "plan",
    ["not a plan", "s1 = gone()", "s1 = odd(x=s1.a)", "s1 = odd(x=context.gone)", "s1 = odd(y=1)"],
)
def test_case_planner_ignores_an_invalid_example_of_a_tool(
    shop_planner: CasePlanner, plan: str
) -> None:
    odd = ToolSpec("odd", "", (parameter("x", "literal"),), example=ToolExample("very odd", plan))
    assert result_of(shop_planner, "very odd", SHOP.with_(odd)).fallback == ""
    assert result_of(shop_planner, "do you sell wool hats", SHOP.with_(odd)).plan.tools == ("find",)


def test_repeated_question_gets_the_plan_case_with_the_same_context_fields() -> None:
    alerts = ToolSpec("alerts", "Alerts.", (parameter("level", choices=("high", "low")),))
    low, high = (f's1 = alerts(level="{level}")' for level in ("low", "high"))
    known, toolbox = "anything urgent going on", Toolbox([alerts])
    planner = case_planner(make_queries([(known, low, {}), (known, high, {"storm": True})]))
    for question in (known, "Anything  urgent going ON"):
        calm = result_of(planner, question, toolbox)
        storm = result_of(planner, question, toolbox, storm=1)
        assert (str(calm.plan), str(storm.plan)) == (low, high)
        assert calm.confidence == storm.confidence == REPEATED_CONFIDENCE


def test_repeated_question_with_another_literal_gets_the_plan_of_the_case(
    shop_planner: CasePlanner,
) -> None:
    plans = {
        "how heavy is my garden hose": OWN_PLAN.format("garden hose"),
        "Do you sell PAPER lanterns?": 's1 = find(query="PAPER lanterns")',
    }
    for question, plan in plans.items():
        result = result_of(shop_planner, question)
        assert (str(result.plan), result.confidence) == (plan, REPEATED_CONFIDENCE)
    # A literal longer by more than one word makes it another question.
    long = result_of(shop_planner, "do you sell paper lanterns and is the red one on sale today")
    assert long.confidence != REPEATED_CONFIDENCE


def test_single_tool_with_equal_plan_cases_gives_every_question_that_plan() -> None:
    search = ToolSpec("search", "Finds papers.", (parameter("query", "question", "literal"),))
    plan = "s1 = search(query=question)"
    questions = ("who wrote it", "why", "when was it", "how long is it", "where is it kept")
    planner = case_planner(make_queries([(question, plan, {}) for question in questions]))
    for question in ("prime", "compare the pump with the brake", "Was ist am Hafen?"):
        assert str(result_of(planner, question, Toolbox([search])).plan) == plan
    small_planner = case_planner(make_queries([(question, plan, {}) for question in questions[:3]]))
    assert str(result_of(small_planner, "hello", Toolbox([search])).plan) == "s1 = no_evidence()"


def boat_planner() -> CasePlanner:
    """Return a planner whose only case calls the tool ``own``."""
    return case_planner(make_queries([("is my red boat old", 's1 = own(query="red boat")', {})]))


def test_question_without_words_gets_the_fallback_plan_with_a_reason(
    shop_planner: CasePlanner,
) -> None:
    result = result_of(shop_planner, "?!")
    assert str(result.plan) == "s1 = find(query=question)"
    assert "No plan was found" in result.fallback
    assert result.confidence == 0


def test_case_planner_uses_the_fallback_plan_above_512_tools(shop_planner: CasePlanner) -> None:
    tools = [replace(SHOP["find"], name=f"find_{number}") for number in range(513)]
    result = result_of(shop_planner, "do you sell tents", Toolbox(tools))
    assert str(result.plan) == "s1 = find_0(query=question)"
    assert "at most 512 tools" in result.fallback


def test_case_planner_skips_a_case_whose_plan_is_invalid_for_the_request() -> None:
    result = result_of(boat_planner(), "is my red boat old", Toolbox([ToolSpec("own", "")]))
    assert str(result.plan) == "s1 = no_evidence()"
    assert (result.fallback, result.attempts) == ("", 2)


def test_case_planner_without_cases_and_tools_plans_no_evidence() -> None:
    assert str(result_of(case_planner([]), "is it red", Toolbox([])).plan) == "s1 = no_evidence()"


def test_case_planner_plan_is_valid_when_the_question_fits_no_parameter() -> None:
    def paint(colours: list[str]) -> str:
        """Paints."""
        return str(colours)

    result = result_of(boat_planner(), "is my red boat old", Toolbox([tool_from_function(paint)]))
    assert str(result.plan) == "s1 = no_evidence()"


@pytest.mark.parametrize("reference", ["s9.item_id", "s2.item_id"])
def test_case_planner_ignores_a_case_with_a_reference_past_its_last_step(reference: str) -> None:
    broken = ("how heavy is it", f"s1 = fact(item_id={reference}, query=question)", {})
    planner = case_planner(make_queries([broken, *ROWS]))
    assert reference not in str(result_of(planner, "how heavy is it").plan)


def test_order_of_plan_cases_does_not_change_the_plans() -> None:
    planners = [case_planner(make_queries(rows)) for rows in (ROWS, ROWS[::-1])]
    for question in ("do you sell a lamp", "is it", "hello", "how old is my return"):
        results = [result_of(planner, question).plan for planner in planners * 2]
        assert len(set(map(str, results))) == 1


def test_case_planner_aplan_gives_the_same_plan_as_plan(shop_planner: CasePlanner) -> None:
    request = PlanRequest("do you sell paper lanterns", SHOP)
    result = asyncio.run(shop_planner.aplan(request))
    assert result.plan == shop_planner.plan(request).plan
