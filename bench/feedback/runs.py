"""The results of one question: of a loop, one search, the post's loop, or a plain filter."""

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
#: The judges' names in tables.
GOLD, OFFLINE, SHUFFLED, BLIND = "labels", "offline", "labels shuffled", "first two, unread"
#: Of the post's loop: most rounds, which it does not bound itself, and numbers of cases a round,
#: until it finds as much as ours.
POST_ROUNDS, POST_KS = 10, (10, 15, 20, 30, 40, 60)
_FILE = re.compile(r"[\w./-]+\.py\b")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class State:
    """The state after a round.

    Attributes:
        judged: Ids of all judged cases, in order.
        marked: Those that the judge called relevant: the answer set.
    """

    judged: Sequence[str]
    marked: frozenset[str] = frozenset()

    def coverage(self, question: LabelledQuestion) -> float:
        """Return the share of the relevant cases that was judged at all."""
        return len(question.relevant.intersection(self.judged)) / len(question.relevant)

    def answer(self, question: LabelledQuestion) -> float:
        """Return the share of the relevant cases that the judge called relevant."""
        return len(question.relevant & self.marked) / len(question.relevant)

    def at_k(self, question: LabelledQuestion) -> float:
        """Return recall@k of the judged cases, the marked ones first."""
        ranking = sorted(self.judged, key=lambda id_: id_ not in self.marked)
        return len(question.relevant.intersection(ranking[:K])) / len(question.relevant)


@dataclass(frozen=True, slots=True)
class Run:
    """A search for the relevant cases of one question.

    Attributes:
        states: After each round; at least one.
        tokens: Of all judged cases, estimated at four characters each.
        judgements: The number of judgements, where some cases were judged again.
    """

    states: Sequence[State]
    tokens: int
    judgements: int = 0

    def after(self, number: int) -> State:
        """Return the state after a round, from 1; after the last round, the last state."""
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
            candidate
            for candidate in result.candidates
            if candidate["round"] <= number and candidate["relevant"] is not None
        ]
        marked = frozenset(candidate["id"] for candidate in judged if candidate["relevant"])
        states.append(State([candidate["id"] for candidate in judged], marked))
    return Run(states, result.tokens)


def single(question: Question, judge: Judge, judged: int) -> State:
    """Return the state of one search that judges as many cases as a loop did, in one call."""
    candidates = [
        Candidate(near.hit, case_text(near.hit.case), near.nearness, 1)
        for near in question.best(judged)
    ]
    request = JudgeRequest(question.text, (), candidates)
    verdicts = checked(judge.judge(request), request)
    return State([candidate.id for candidate in candidates], verdicts.relevant)


def post_loop(question: Question, labelled: LabelledQuestion, k: int) -> Run:
    """Return the run of the RepoGPT post's own loop with the labels as judge.

    Every round searches for k cases and judges all of them, known ones again. The query of a round
    is the question followed by the texts of all relevant cases. It ends when the number of relevant
    cases did not grow.
    """
    relevant: dict[str, str] = {}
    seen: dict[str, None] = {}
    states: list[State] = []
    judged = tokens = 0
    nearest = question.best(k)
    while True:
        judged += len(nearest)
        texts = {near.hit.case.id: case_text(near.hit.case) for near in nearest}
        tokens += estimated_tokens(question.text, *texts.values())
        seen |= dict.fromkeys(texts)
        before = len(relevant)
        relevant |= {id_: text for id_, text in texts.items() if id_ in labelled.relevant}
        states.append(State(list(seen), frozenset(relevant)))
        if len(relevant) == before or len(states) == POST_ROUNDS:
            return Run(states, tokens, judged)
        query = "\n".join([question.text, *relevant.values()])
        nearest = question.nearest(question.embed([query]), k)


@dataclass(frozen=True, slots=True)
class GoldJudge:
    """Judges by the labels: the gain of a perfect judge."""

    question: LabelledQuestion
    name: str = GOLD

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return those of the candidates that are labelled relevant."""
        return Verdicts(self.question.relevant.intersection(c.id for c in request.candidates))


@dataclass(frozen=True, slots=True)
class ShuffledJudge:
    """Calls as many candidates relevant as the labels do, but others: a control.

    A loop's gain with it comes of searching again, not of knowing the relevant cases.
    """

    question: LabelledQuestion
    name: str = SHUFFLED

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return as many candidates as are labelled relevant, drawn at random."""
        ids = [candidate.id for candidate in request.candidates]
        count = sum(id_ in self.question.relevant for id_ in ids)
        drawn = random.Random(f"{self.question.id} {len(request.relevant)}").sample(ids, count)
        return Verdicts(frozenset(drawn))


@dataclass(frozen=True, slots=True)
class BlindJudge:
    """Takes the first two cases for relevant, and nothing after: pseudo relevance feedback.

    A control: a loop's gain without a judge.
    """

    name: str = BLIND

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return the first two candidates of the first round."""
        first = [] if request.relevant else request.candidates[:2]
        return Verdicts(frozenset(candidate.id for candidate in first))


class SymbolFilter:
    """Finds the chunks of the symbols that a question names, without a search.

    A question names a symbol where the symbol's last part is one of its words, in the same case.
    Of the named symbols, those with most named parts count: ``Client.send`` before another class's
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
        """Return the ids of the chunks, ordered by file and position; none where none is named."""
        files = set(_FILE.findall(question))
        words = set(_NAME.findall(_FILE.sub(" ", question)))
        named = [
            (sum(part in words for part in symbol.split(".")), case)
            for word in words
            for symbol in self._named.get(word, ())
            for case in self._chunks[symbol]
        ]
        if within := [(n, case) for n, case in named if case.metadata["source"] in files]:
            named = within
        most = max((count for count, _ in named), default=0)
        best = [case for count, case in named if count == most]
        best.sort(key=lambda case: (case.metadata["source"], case.metadata["position"]))
        return [case.id for case in best]
