"""Where spans begin and end, as a toolbox's plan cases have it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from casewright.planner import AnnotatedQuery, PlanRequest, plan_store
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


def planned(cases: Sequence[AnnotatedQuery], question: str) -> str:
    with plan_store(cases, HashingEncoder()) as store:
        return str(ParserPlanner(store).plan(PlanRequest(question, Toolbox([FIND]))).plan)


def cases(article: str) -> list[AnnotatedQuery]:
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
def test_a_span_has_the_article_if_those_of_the_plan_cases_have_it(article: str) -> None:
    question = "Do you have the glass harbour?"
    assert planned(cases(article), question) == f's1 = find_book(title="{article}glass harbour")'


def test_fewer_plan_cases_than_four_move_no_span() -> None:
    question = "Do you have the glass harbour?"
    assert planned(cases("the ")[:3], question) == planned([], question)
