"""The plan parser reads and writes plans, and returns valid plans with any weights."""

from __future__ import annotations

from typing import Any

import pytest

from casewright.planner import MAX_STEPS, AnnotatedQuery, PlanRequest, parse_plan
from casewright.planner.parser.example_cases import PlanCase
from casewright.planner.parser.message import read_message
from casewright.planner.parser.plan_reading import read_plan, write_plan
from casewright.planner.parser.runtime import parser_tokenizer
from casewright.planner.parser.schema import Schema
from casewright.tools import Toolbox, ToolSpec
from tests.planner.helpers import ROWS, SHOP, parameter
from tests.planner.parsers import runtime

BOOK_TABLE = ToolSpec(
    "book_table",
    "Books a table at a restaurant.",
    (
        parameter("place", "span", "context", "step", kind="string"),
        parameter("guests", "number", kind="integer", required=False),
        parameter("outside", "boolean", kind="boolean", required=False),
        parameter("meal", kind="string", choices=("lunch", "dinner"), required=False),
    ),
    ("booking_id",),
)
TABLES = Toolbox([BOOK_TABLE])
PLANS = [
    ('s1 = book_table(place="Chez Nous", guests=2, meal="dinner")', {}),
    ("s1 = book_table(place=context.restaurant, outside=true)", {"restaurant": "Chez Nous"}),
    ("s1 = no_evidence()", {}),
]


@pytest.mark.parametrize(("text", "context"), PLANS)
def test_plan_that_the_parser_reads_is_written_back_unchanged(
    text: str, context: dict[str, Any]
) -> None:
    tokenizer = parser_tokenizer()
    schema = Schema.of(TABLES, tokenizer)
    question = "Dinner for two at chez nous, outside if you can"
    message = read_message(tokenizer, question, context)
    steps = read_plan(parse_plan(text), schema, message)
    assert steps is not None
    assert str(write_plan(steps, schema, message)).casefold() == text.casefold()


def test_read_plan_returns_none_for_a_plan_of_unknown_tools() -> None:
    tokenizer = parser_tokenizer()
    message = read_message(tokenizer, "anything", {})
    plan = parse_plan("s1 = fly(to=question)")
    assert read_plan(plan, Schema.of(TABLES, tokenizer), message) is None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("toolbox", [SHOP, TABLES])
def test_untrained_parser_returns_only_valid_plans(toolbox: Toolbox, seed: int) -> None:
    parser = runtime(seed)
    cases = [AnnotatedQuery.read({"query": q, "plan": p, "context": c}) for q, p, c in ROWS]
    plan_cases = [PlanCase(case.query, case.plan, case.record.context) for case in cases]
    prepared = parser.prepare(toolbox, plan_cases if toolbox is SHOP else [])
    for question, context in (
        ("Dinner for two at Chez Nous, and how loud is my radio?", {}),
        ("is it waterproof", {"product_id": "p1", "restaurant": None}),
        ("ОК", {"item_id": 7}),
    ):
        request = PlanRequest(question, toolbox, context)
        message, plans = parser.plans(prepared, question, context, MAX_STEPS)
        assert plans
        for plan in plans:
            request.validate(write_plan(plan.steps, prepared.schema, message))
        scores = [plan.score for plan in plans]
        assert scores == sorted(scores, reverse=True)


def test_parser_plans_have_at_most_the_allowed_steps() -> None:
    parser = runtime()
    prepared = parser.prepare(SHOP, [])
    _, plans = parser.plans(prepared, "a lamp, a tent and a radio", {}, 1)
    assert {len(plan.steps) for plan in plans} == {1}


def test_parser_returns_no_plan_for_a_message_without_words() -> None:
    parser = runtime()
    assert parser.plans(parser.prepare(SHOP, []), "?!", {}, MAX_STEPS)[1] == []
