"""Who judges in the bench, beside the judge that is measured: the labels, and controls."""

from __future__ import annotations

import random
from dataclasses import dataclass

from casewright.bench.feedback.sets import FeedbackQuestion
from casewright.stores.feedback import JudgeRequest, Verdicts

#: How judges are named in tables.
GOLD, OFFLINE, SHUFFLED, BLIND = "labels", "offline", "labels shuffled", "first two, unread"


@dataclass(frozen=True, slots=True)
class GoldJudge:
    """Judges by the labels: what a perfect judge would gain."""

    question: FeedbackQuestion
    name: str = GOLD

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return those of the candidates that are labelled relevant."""
        asked = frozenset(one.id for one in request.candidates)
        return Verdicts(asked & self.question.relevant)


@dataclass(frozen=True, slots=True)
class ShuffledJudge:
    """Calls as many candidates relevant as the labels do, but others: a control.

    What a loop gains with it comes of searching again, not of knowing what is relevant.
    """

    question: FeedbackQuestion
    name: str = SHUFFLED

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return as many candidates as are labelled relevant, drawn at random."""
        asked = [one.id for one in request.candidates]
        count = sum(id_ in self.question.relevant for id_ in asked)
        drawn = random.Random(f"{self.question.id} {len(request.relevant)}").sample(asked, count)
        return Verdicts(frozenset(drawn))


@dataclass(frozen=True, slots=True)
class BlindJudge:
    """Takes the first two cases for relevant, and nothing after: pseudo relevance feedback.

    A control: what a loop gains with no judge at all.
    """

    name: str = BLIND

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return the first two candidates of the first round."""
        first = [] if request.relevant else request.candidates[:2]
        return Verdicts(frozenset(one.id for one in first))
