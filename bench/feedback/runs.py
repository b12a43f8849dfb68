"""What is found for one question: by a loop, one search, the post's loop, or a plain filter."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from casewright.finetune.judge_data import LabelledQuestion
from casewright.graph.feedback import FeedbackResult
from casewright.graph.feedback.limits import estimated_tokens
from casewright.stores import Case, Question
from casewright.stores.feedback import (
    Candidate,
    Judge,
    JudgeRequest,
    Verdicts,
    case_text,
    checked,
)

#: Results of a ranking that are looked at.
K = 10
#: How judges are named in tables.
GOLD, OFFLINE, SHUFFLED, BLIND = "labels", "offline", "labels shuffled", "first two, unread"
#: Of the post's loop: rounds at most, of which it has no bound of its own, and cases that it
#: fetches a round, until it finds as much as ours.
POST_ROUNDS, POST_KS = 10, (10, 15, 20, 30, 40, 60)
_FILE = re.compile(r"[\w./-]+\.py\b")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class State:
    """What is known after a round.

    Attributes:
        judged: Ids of all that was judged, in order.
        marked: Those that the judge called relevant: the answer set.
    """

    judged: Sequence[str]
    marked: frozenset[str] = frozenset()

    def coverage(self, question: LabelledQuestion) -> float:
        """Return the share of the relevant that was judged at all."""
        return len(question.relevant.intersection(self.judged)) / len(question.relevant)

    def answer(self, question: LabelledQuestion) -> float:
        """Return the share of the relevant that the judge called relevant."""
        return len(question.relevant & self.marked) / len(question.relevant)

    def at_k(self, question: LabelledQuestion) -> float:
        """Return recall@k of what was judged, the marked first."""
        ranking = sorted(self.judged, key=lambda id_: id_ not in self.marked)
        return len(question.relevant.intersection(ranking[:K])) / len(question.relevant)


@dataclass(frozen=True, slots=True)
class Run:
    """One way to look for what answers a question.

    Attributes:
        states: After each round; at least one.
        tokens: Of all that was judged, estimated at four characters each.
        judgements: How often a case was judged, where some were judged again.
    """

    states: Sequence[State]
    tokens: int
    judgements: int = 0

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
        marked = frozenset(one["id"] for one in judged if one["relevant"])
        states.append(State([one["id"] for one in judged], marked))
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


def post_loop(question: Question, asked: LabelledQuestion, k: int) -> Run:
    """Run the RepoGPT post's own loop with the labels as judge.

    Every round searches for k cases and judges all of them; what was judged before and is found
    again is judged again. The query of a round is the question followed by the texts of all that is
    relevant. It ends when the number of relevant cases did not grow.
    """
    relevant: dict[str, str] = {}
    seen: dict[str, None] = {}
    states: list[State] = []
    judged = tokens = 0
    found = question.best(k)
    while True:
        judged += len(found)
        texts = {one.hit.case.id: case_text(one.hit.case) for one in found}
        tokens += estimated_tokens(question.text, *texts.values())
        seen |= dict.fromkeys(texts)
        before = len(relevant)
        relevant |= {id_: text for id_, text in texts.items() if id_ in asked.relevant}
        states.append(State(list(seen), frozenset(relevant)))
        if len(relevant) == before or len(states) == POST_ROUNDS:
            return Run(states, tokens, judged)
        query = "\n".join([question.text, *relevant.values()])
        found = question.nearest(question.embed([query]), k)


@dataclass(frozen=True, slots=True)
class GoldJudge:
    """Judges by the labels: what a perfect judge would gain."""

    question: LabelledQuestion
    name: str = GOLD

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return those of the candidates that are labelled relevant."""
        return Verdicts(self.question.relevant.intersection(one.id for one in request.candidates))


@dataclass(frozen=True, slots=True)
class ShuffledJudge:
    """Calls as many candidates relevant as the labels do, but others: a control.

    What a loop gains with it comes of searching again, not of knowing what is relevant.
    """

    question: LabelledQuestion
    name: str = SHUFFLED

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return as many candidates as are labelled relevant, drawn at random."""
        asked = [one.id for one in request.candidates]
        count = sum(id_ in self.question.relevant for id_ in asked)
        drawn = random.Random(f"{self.question.id} {len(request.relevant)}").sample(asked, count)
        return Verdicts(frozenset(drawn))


@dataclass(frozen=True, slots=True)
class BlindJudge:
    """Takes the first two cases for relevant, and nothing after: what a loop gains with no judge.

    A control: pseudo relevance feedback.
    """

    name: str = BLIND

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return the first two candidates of the first round."""
        first = [] if request.relevant else request.candidates[:2]
        return Verdicts(frozenset(one.id for one in first))


class SymbolFilter:
    """The plain way beside a search: the chunks of those symbols that the question names.

    A symbol is named by a question that has its last part as a word, spelled alike. Of those that
    are named, the ones count of which most parts are: ``Client.send`` before another class's
    ``send`` where the question says "Client". Where it names a file, only that file's count.

    Args:
        cases: Chunks of code, as ``ingest`` makes them.
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self._chunks: defaultdict[str, list[Case]] = defaultdict(list)
        for case in cases:
            if symbol := str(case.metadata.get("symbol", "")):
                self._chunks[symbol].append(case)
        self._named: defaultdict[str, list[str]] = defaultdict(list)
        for symbol in self._chunks:
            self._named[symbol.rpartition(".")[2]].append(symbol)

    def find(self, question: str) -> list[str]:
        """Return the ids of the chunks, ordered by file and place; none where none is named."""
        files = set(_FILE.findall(question))
        words = set(_NAME.findall(_FILE.sub(" ", question)))
        found = [
            (sum(part in words for part in symbol.split(".")), case)
            for word in words
            for symbol in self._named.get(word, ())
            for case in self._chunks[symbol]
        ]
        if within := [(n, case) for n, case in found if case.metadata["source"] in files]:
            found = within
        most = max((count for count, _ in found), default=0)
        best = [case for count, case in found if count == most]
        best.sort(key=lambda case: (case.metadata["source"], case.metadata["position"]))
        return [case.id for case in best]
