"""The searches for relevant cases, and the judges, that the feedback bench compares."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from casewright.bench.harness import timed
from casewright.finetune.judge_sets.sets import LabelledQuestion
from casewright.graph.feedback import FeedbackResult
from casewright.graph.feedback.state import estimated_tokens
from casewright.stores import Case, Question
from casewright.stores.feedback import Candidate, Judge, JudgeRequest, Verdicts, case_text, checked

#: The k of recall@k.
K = 10
#: The judges' names in tables.
GOLD, OFFLINE, SHUFFLED, BLIND = "labels", "offline", "labels shuffled", "first two, unread"
#: For the loop of the RepoGPT post (see docs/glossary.md): maximum number of rounds, and numbers of
#: cases in a round.
MAX_POST_ROUNDS, POST_KS = 10, (10, 15, 20, 30, 40, 60)
_PATH = re.compile(r"[\w./-]+\.py\b")
_NAME = re.compile(r"[A-Za-z_]\w*")


class SearchState(NamedTuple):
    """The ids of the cases that a search has judged so far, and of those marked as relevant."""

    judged: Sequence[str]
    marked: frozenset[str] = frozenset()

    def judged_recall(self, question: LabelledQuestion) -> float:
        """Return the recall of the judged cases."""
        return len(question.relevant.intersection(self.judged)) / len(question.relevant)

    def marked_recall(self, question: LabelledQuestion) -> float:
        """Return the recall of the marked cases."""
        return len(question.relevant & self.marked) / len(question.relevant)

    def recall_at_k(self, question: LabelledQuestion) -> float:
        """Return recall@k of a ranking of the judged cases with the marked ones first."""
        ranking = sorted(self.judged, key=lambda id_: id_ not in self.marked)
        return len(question.relevant.intersection(ranking[:K])) / len(question.relevant)


class Run(NamedTuple):
    """A search for a question's relevant cases: the states after each round, and the costs."""

    states: Sequence[SearchState]
    tokens: int  # the number of tokens that the judge read, estimated
    judgements: int = 0  # for the post's loop: the number of judgements in all rounds

    def after(self, number: int) -> SearchState:
        """Return the state after round ``number`` (from 1), or the last state."""
        return self.states[min(number, len(self.states)) - 1]

    @property
    def last(self) -> SearchState:
        """The state after the last round."""
        return self.states[-1]


def loop_run(result: FeedbackResult) -> Run:
    """Return a feedback loop's result as a run."""
    states = []
    judged = [candidate for candidate in result.candidates if candidate["relevant"] is not None]
    for number in range(1, len(result.rounds) + 1):
        judged_by_then = [candidate for candidate in judged if candidate["round"] <= number]
        marked = frozenset(candidate["id"] for candidate in judged_by_then if candidate["relevant"])
        states.append(SearchState([candidate["id"] for candidate in judged_by_then], marked))
    return Run(states, result.tokens)


def single_search(question: Question, judge: Judge, count: int) -> SearchState:
    """Return the state after one search for ``count`` cases and one call of the judge."""
    request = _request(question, count)
    verdicts = checked(judge.judge(request), request)
    return SearchState([candidate.id for candidate in request.candidates], verdicts.relevant)


def judgement_ms(question: Question, judge: Judge, count: int = 10) -> float:
    """Return the milliseconds that a judge takes for ``count`` cases, without the search."""
    request = _request(question, count)
    return timed(lambda: judge.judge(request))[1]


def _request(question: Question, count: int) -> JudgeRequest:
    nearest = question.best(count)
    candidates = [Candidate(n.hit, case_text(n.hit.case), n.nearness, round=1) for n in nearest]
    return JudgeRequest(question.text, relevant=(), candidates=candidates)


def post_loop(question: Question, labelled: LabelledQuestion, k: int) -> Run:
    """Return a run of the RepoGPT post's loop with the labels as judge.

    A round's query is the question and the texts of all relevant cases so far. A round judges all k
    found cases, also those judged before. The loop ends when a round adds no relevant case.
    """
    relevant: dict[str, str] = {}
    judged: dict[str, None] = {}
    states: list[SearchState] = []
    judgements = tokens = 0
    nearest = question.best(k)
    while True:
        judgements += len(nearest)
        texts = {n.hit.case.id: case_text(n.hit.case) for n in nearest}
        tokens += estimated_tokens(question.text, *texts.values())
        judged |= dict.fromkeys(texts)
        count_before = len(relevant)
        relevant |= {id_: text for id_, text in texts.items() if id_ in labelled.relevant}
        states.append(SearchState(list(judged), frozenset(relevant)))
        if len(relevant) == count_before or len(states) == MAX_POST_ROUNDS:
            return Run(states, tokens, judgements)
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
    """A control that marks random candidates, as many as are labelled relevant.

    A loop's gain with this judge comes only from the repeated search.
    """

    question: LabelledQuestion
    name: str = SHUFFLED

    def judge(self, request: JudgeRequest) -> Verdicts:
        """Return random candidates, as many as are labelled relevant."""
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
        is_first_round = not request.relevant
        marked = request.candidates[:2] if is_first_round else []
        return Verdicts(frozenset(candidate.id for candidate in marked))


class SymbolFilter:
    """A control without similarity search: finds the code chunks of the symbols in a question.

    A question names a symbol if the symbol's last part is one of the question's words. If the
    question also names files, symbols in these files are preferred. Of these symbols, those with
    the most parts in the question are taken: ``Client.send`` if the question also has "Client".
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        #: Symbols with their chunks, by the last part of the symbol.
        self._chunks: defaultdict[str, list[tuple[str, Case]]] = defaultdict(list)
        for case in cases:
            if symbol := str(case.metadata.get("symbol", "")):
                self._chunks[symbol.rpartition(".")[2]].append((symbol, case))

    def find(self, question: str) -> list[str]:
        """Return the ids of the chunks, ordered by file and position."""
        files = set(_PATH.findall(question))
        words = set(_NAME.findall(_PATH.sub(" ", question)))
        matches = [  # the number of the symbol's parts in the question, and the chunk
            (sum(part in words for part in symbol.split(".")), case)
            for word in words
            for symbol, case in self._chunks.get(word, ())
        ]
        in_files = [(count, case) for count, case in matches if case.metadata["source"] in files]
        matches = in_files or matches
        highest = max((count for count, _ in matches), default=0)
        best = [case for count, case in matches if count == highest]
        best.sort(key=lambda case: (case.metadata["source"], case.metadata["position"]))
        return [case.id for case in best]
