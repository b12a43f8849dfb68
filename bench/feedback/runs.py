"""What one loop found for one question, round by round, and a single search that judges as many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from casewright.bench.feedback.sets import FeedbackQuestion
from casewright.graph.feedback import FeedbackResult
from casewright.stores import Question
from casewright.stores.feedback import Candidate, Judge, JudgeRequest, case_text, checked

#: Results of a ranking that are looked at.
K = 10


@dataclass(frozen=True, slots=True)
class State:
    """What is known after a round.

    Attributes:
        judged: Ids of all that was judged, in order.
        marked: Those that the judge called relevant.
    """

    judged: Sequence[str]
    marked: frozenset[str]

    def coverage(self, question: FeedbackQuestion) -> float:
        """Return the share of the relevant that was judged at all."""
        return len(question.relevant.intersection(self.judged)) / len(question.relevant)

    def answer(self, question: FeedbackQuestion) -> float:
        """Return the share of the relevant that the judge called relevant: the answer set."""
        return len(question.relevant & self.marked) / len(question.relevant)

    def at_k(self, question: FeedbackQuestion, k: int = K) -> float:
        """Return recall@k of what was judged, the marked first."""
        ranking = sorted(self.judged, key=lambda id_: id_ not in self.marked)
        return len(question.relevant.intersection(ranking[:k])) / len(question.relevant)

    @property
    def size(self) -> int:
        """How many cases are in the answer set."""
        return len(self.marked)


@dataclass(frozen=True, slots=True)
class Run:
    """One way to look for what answers a question.

    Attributes:
        states: After each round; at least one.
        tokens: Of all that was judged, estimated at four characters each.
    """

    states: Sequence[State]
    tokens: int

    def after(self, number: int) -> State:
        """Return the state after a round, from 1; after the last, nothing changes any more."""
        return self.states[min(number, len(self.states)) - 1]

    @property
    def last(self) -> State:
        """The state at the end."""
        return self.states[-1]


def looped(result: FeedbackResult) -> Run:
    """Return a loop's result as a run."""
    states = []
    for number in range(1, len(result.rounds) + 1):
        judged = [
            one
            for one in result.candidates
            if one["round"] <= number and one["relevant"] is not None
        ]
        states.append(
            State(
                [one["id"] for one in judged],
                frozenset(one["id"] for one in judged if one["relevant"]),
            )
        )
    return Run(states, result.tokens)


def single(question: Question, judge: Judge, judged: int) -> State:
    """Return what one search finds that judges as many cases as a loop did, in one call."""
    candidates = [
        Candidate(one.hit, case_text(one.hit.case), one.nearness, 1)
        for one in question.best(judged)
    ]
    request = JudgeRequest(question.text, (), candidates)
    verdicts = checked(judge.judge(request), request)
    return State([one.id for one in candidates], verdicts.relevant)
