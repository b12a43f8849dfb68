"""Many plan cases with few tool sequences say which of them a question has."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from casewright.planner.parse import parse_plan
from casewright.planner.parser.example_cases import PlanCase
from casewright.planner.parser_planner import ToolSequenceElection

PLANS = ('s1 = find_part(query="pump")', 's1 = opening_hours(day="Monday")')
ASKED = ("where is the {} in the store room", "how late is the {} counter open")
THINGS = [f"{size} {part}" for size in ("big", "small", "old", "new") for part in "abcdef"]


def known(count: int) -> Sequence[PlanCase]:
    return [
        PlanCase(asked.format(thing), parse_plan(plan), {})
        for thing in THINGS[:count]
        for asked, plan in zip(ASKED, PLANS, strict=True)
    ]


@pytest.mark.parametrize(("count", "decides"), [(24, True), (12, False), (0, False)])
def test_an_election_takes_many_cases_of_each_sequence(count: int, decides: bool) -> None:
    assert ToolSequenceElection(known(count)).decides is decides


def test_the_sequence_of_like_questions_has_the_higher_score() -> None:
    election = ToolSequenceElection(known(24))
    sequences = [("find_part",), ("opening_hours",), ("find_part", "opening_hours")]
    for number, asked in enumerate(ASKED):
        scores = election.scores(asked.format("blue valve"), sequences)
        assert scores.index(max(scores)) == number
        assert scores[2] == min(scores)
