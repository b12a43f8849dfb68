"""Searches for a question: a feedback loop, one search, the post's loop, or a symbol filter."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from casewright.finetune.judge_sets.sets import LabelledQuestion
from casewright.graph.feedback import FeedbackResult
from casewright.graph.feedback.state import estimated_tokens
from casewright.stores import Case, Question
from casewright.stores.feedback import Candidate, Judge, JudgeRequest, Verdicts, case_text, checked

#: The k of recall@k.
K = 10
#: The judges' names in tables.
GOLD, OFFLINE, SHUFFLED, BLIND = "labels", "offline", "labels shuffled", "first two, unread"
#: Our bound of the rounds of the post's loop, and the numbers of cases per round.
POST_ROUNDS, POST_KS = 10, (10, 15, 20, 30, 40, 60)
_FILE = re.compile(r"[\w./-]+\.py\b")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class State:
    """The ids of the cases judged so far, and of those ``marked`` as relevant."""

    judged: Sequence[str]
    marked: frozenset[str] = frozenset()

    def coverage(self, question: LabelledQuestion) -> float:
        """Return the recall of the judged cases."""
        return len(question.relevant.intersection(self.judged)) / len(question.relevant)

    def answer(self, question: LabelledQuestion) -> float:
        """Return the recall of the marked cases."""
        return len(question.relevant & self.marked) / len(question.relevant)

    def at_k(self, question: LabelledQuestion) -> float:
        """Return recall@k of the judged cases, with the marked ones first."""
        ranking = sorted(self.judged, key=lambda id_: id_ not in self.marked)
        return len(question.relevant.intersection(ranking[:K])) / len(question.relevant)


@dataclass(frozen=True, slots=True)
class Run:
    """A search for a question's relevant cases: the states after each round, and the costs."""

    states: Sequence[State]
    tokens: int
    judgements: int = 0

    def after(self, number: int) -> State:
        """Return the state after round ``number`` (from 1), or the last state."""
        return self.states[min(number, len(self.states)) - 1]

    @property
    def last(self) -> State:
        """The state at the end."""
        return self.states[-1]


def looped(result: FeedbackResult) -> Run:
    """Return the run of a feedback loop's result."""
    states = []
    judged = [candidate for candidate in result.candidates if candidate["relevant"] is not None]
    for number in range(1, len(result.rounds) + 1):
        until = [candidate for candidate in judged if candidate["round"] <= number]
        marked = frozenset(candidate["id"] for candidate in until if candidate["relevant"])
        states.append(State([candidate["id"] for candidate in until], marked))
    return Run(states, result.tokens)


def single(question: Question, judge: Judge, judged: int) -> State:
    """Return the state after one search for ``judged`` cases, and one call of the judge."""
    candidates = [
        Candidate(near.hit, case_text(near.hit.case), near.nearness, 1)
        for near in question.best(judged)
    ]
    request = JudgeRequest(question.text, (), candidates)
    verdicts = checked(judge.judge(request), request)
    return State([candidate.id for candidate in candidates], verdicts.relevant)


def post_loop(question: Question, labelled: LabelledQuestion, k: int) -> Run:
    """Return a run of the RepoGPT post's loop with the labels as judge.

    Every round searches for k cases with the question and the texts of all relevant cases as query,
    and judges all k, also those judged before. The loop ends when a round adds no relevant case.
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
    """A perfect judge, which uses the labels."""

    question: LabelledQuestion
    name: str = GOLD

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return the candidates that are labelled relevant."""
        return Verdicts(self.question.relevant.intersection(c.id for c in request.candidates))


@dataclass(frozen=True, slots=True)
class ShuffledJudge:
    """A control that marks as many candidates as the labels do, at random.

    A loop's gain with this judge comes from the repeated search alone.
    """

    question: LabelledQuestion
    name: str = SHUFFLED

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return random candidates, as many as have a relevant label."""
        ids = [candidate.id for candidate in request.candidates]
        count = sum(id_ in self.question.relevant for id_ in ids)
        rng = random.Random(f"{self.question.id} {len(request.relevant)}")
        return Verdicts(frozenset(rng.sample(ids, count)))


@dataclass(frozen=True, slots=True)
class BlindJudge:
    """A control that marks the first two cases: pseudo relevance feedback."""

    name: str = BLIND

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return the first two candidates of the first round."""
        first = [] if request.relevant else request.candidates[:2]
        return Verdicts(frozenset(candidate.id for candidate in first))


class SymbolFilter:
    """A filter without similarity search: the code chunks of the symbols that a question names.

    A question names a symbol if the symbol's last part is a word of the question. If it also names
    a file, only that file's symbols count. Of these, only the symbols with the most named parts
    count: ``Client.send`` if the question also has "Client".
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
        """Return the ids of the chunks, ordered by file and position."""
        files = set(_FILE.findall(question))
        words = set(_NAME.findall(_FILE.sub(" ", question)))
        named = [
            (sum(part in words for part in symbol.split(".")), case)
            for word in words
            for symbol in self._named.get(word, ())
            for case in self._chunks[symbol]
        ]
        named = [(n, case) for n, case in named if case.metadata["source"] in files] or named
        highest = max((count for count, _ in named), default=0)
        best = [case for count, case in named if count == highest]
        best.sort(key=lambda case: (case.metadata["source"], case.metadata["position"]))
        return [case.id for case in best]
