"""Plans follow the plan cases in where spans start and end, and in digits as text or number."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from casewright.planner import AnnotatedQuery, PlanRequest, parse_plan, plan_store
from casewright.planner.parser.arrays import ReadCase
from casewright.planner.parser.conventions import CaseConventions
from casewright.planner.parser.message import read_message
from casewright.planner.parser.plan_reading import read_plan, write_plan
from casewright.planner.parser.runtime import parser_tokenizer
from casewright.planner.parser.schema import Schema
from casewright.planner.parser_planner import ParserPlanner
from casewright.tools import Parameter, Toolbox, ToolSpec
from tests.support.encoders import HashingEncoder

FIND = ToolSpec(
    "find_book",
    "Finds a book of the library by its title.",
    (Parameter("title", "title of the book"),),
    ("book_id",),
)
NOUNS = ("green rivers", "stone recipes", "copper birds", "hidden maps", "summer orchard")


def plan_by_cases(cases: Sequence[AnnotatedQuery], question: str) -> str:
    with plan_store(cases, HashingEncoder()) as store:
        return str(ParserPlanner(store).plan(PlanRequest(question, Toolbox([FIND]))).plan)


def article_cases(article: str) -> list[AnnotatedQuery]:
    return [
        AnnotatedQuery.read(
            {
                "query": f"{opening} the {noun}?",
                "plan": f's1 = find_book(title="{article}{noun}")',
                "class": "find",
            }
        )
        for opening, noun in zip(
            ("Have you", "Do you keep", "I look for", "Is there", "Could I get"), NOUNS, strict=True
        )
    ]


@pytest.mark.parametrize("article", ["the ", ""])
def test_span_starts_with_an_article_only_if_spans_of_plan_cases_do(article: str) -> None:
    expected = f's1 = find_book(title="{article}glass harbour")'
    assert plan_by_cases(article_cases(article), "Do you have the glass harbour?") == expected


def test_three_plan_cases_do_not_change_the_ends_of_spans() -> None:
    question = "Do you have the glass harbour?"
    assert plan_by_cases(article_cases("the ")[:3], question) == plan_by_cases([], question)


def plan_by_conventions(examples: Sequence[tuple[str, str]], question: str, plan: str) -> str:
    """Return the plan with the conventions of examples; all of them call ``connection``."""
    tokenizer = parser_tokenizer()
    schema = Schema.of(Toolbox([CONNECTION]), tokenizer)

    def read(text: str, plan: str) -> ReadCase:
        message = read_message(tokenizer, text, {})
        steps = read_plan(parse_plan(plan), schema, message)
        assert steps is not None
        return message, steps

    message, steps = read(question, plan)
    conventions = CaseConventions(schema, [read(*example) for example in examples])
    return str(write_plan(conventions.apply(steps, message), schema, message))


CONNECTION = ToolSpec(
    "connection",
    "Finds a train.",
    (Parameter("origin", "where"), Parameter("goal", "where to"), Parameter("seats", "how many")),
    ("evidence",),
)


def call(origin: str, goal: str, seats: str = "question") -> str:
    return f's1 = connection(origin="{origin}", goal="{goal}", seats={seats})'


def test_a_span_loses_the_article_that_the_plan_cases_leave_out() -> None:
    examples = [
        (f"a train from the {direction} end to Brest", call(f"{direction} end", "Brest"))
        for direction in ("north", "south", "east", "west")
    ]
    question = "is there one from the upper end to Calais"
    expected = call("upper end", "Calais")
    assert plan_by_conventions(examples, question, call("the upper end", "Calais")) == expected


def test_value_of_many_plan_cases_is_not_added_to_the_neighbouring_argument() -> None:
    goals = ("Brest", "Calais", "Rouen", "Nantes", "Tours")
    examples = [(f"a train from Lyon to {goal}", call("Lyon", goal)) for goal in goals]
    plan = call("Lyon", "Paris")
    assert plan_by_conventions(examples, "I need a train Lyon Paris", plan) == plan


def test_digits_become_a_number_unless_a_plan_case_has_them_as_text() -> None:
    question = "from Lyon to Brest for 3 people"
    text, number = call("Lyon", "Brest", '"3"'), call("Lyon", "Brest", "3")
    assert plan_by_conventions([], question, text) == number
    case = ("from Rouen to Tours for 4", call("Rouen", "Tours", '"4"'))
    assert plan_by_conventions([case], question, text) == text
