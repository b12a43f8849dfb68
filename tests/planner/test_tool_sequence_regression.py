"""Many plan cases with few tool sequences decide the tool sequence of a question."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from casewright.planner.parse import parse_plan
from casewright.planner.parser.example_cases import PlanCase
from casewright.planner.parser_planner import ToolSequenceRegression

PLANS = ('s1 = find_part(query="pump")', 's1 = opening_hours(day="Monday")')
QUESTIONS = ("where is the {} in the store room", "how late is the {} counter open")
THINGS = [f"{size} {part}" for size in ("big", "small", "old", "new") for part in "abcdef"]


def plan_cases(count: int) -> Sequence[PlanCase]:
    return [
        PlanCase(question.format(product), parse_plan(plan), {})
        for product in THINGS[:count]
        for question, plan in zip(QUESTIONS, PLANS, strict=True)
    ]


@pytest.mark.parametrize(("count", "has_enough"), [(24, True), (12, False), (0, False)])
def test_tool_sequence_regression_requires_many_plan_cases(count: int, has_enough: bool) -> None:
    assert ToolSequenceRegression(plan_cases(count)).has_enough_cases is has_enough


def test_tool_sequence_of_similar_questions_gets_the_highest_score() -> None:
    regression = ToolSequenceRegression(plan_cases(24))
    sequences = [("find_part",), ("opening_hours",), ("find_part", "opening_hours")]
    for index, question in enumerate(QUESTIONS):
        scores = regression.addends(question.format("blue valve"), sequences)
        assert scores.index(max(scores)) == index
        assert scores[2] == min(scores)
