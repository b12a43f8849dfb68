"""The rounds of a feedback loop, walked with labels: what a judge is asked there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.finetune.judge_data import LabelledQuestion, LabelledSet
from casewright.stores import Found, Question
from casewright.stores.feedback import Candidate, Feedback, JudgeRequest, Strategy, case_text
from casewright.stores.feedback.features import feature_rows

#: Cases of the first round and of every later one, rounds, and characters that are read of a case:
#: as a loop has them where no limits are given.
FIRST_K, MORE_K, ROUNDS, CHARACTERS = 10, 5, 5, 4_000


@dataclass(frozen=True, slots=True)
class Round:
    """What a judge is asked in a round.

    Attributes:
        rows: Their features, array (n, f).
        labels: Whether each is relevant, array (n,).
    """

    later: bool
    ids: tuple[str, ...]
    rows: NDArray[np.float64]
    labels: NDArray[np.bool_]


#: Says which candidates of a round are called relevant: array (n,) of bool.
Marks = Callable[[Round], NDArray[np.bool_]]


def gold(asked: Round) -> NDArray[np.bool_]:
    """Judge by the labels."""
    return asked.labels


class Walker:
    """Walks the loops of one set with one strategy; what it saw in a state it keeps."""

    def __init__(self, labelled: LabelledSet, strategy: Strategy) -> None:
        self.name = labelled.name
        self.strategy = strategy
        self._store = labelled.store
        self._questions: dict[str, Question] = {}
        self._found: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[Found]] = {}
        self._rounds: dict[tuple[str, tuple[str, ...], tuple[str, ...]], Round] = {}

    def rounds(self, asked: LabelledQuestion, marks: Marks) -> list[tuple[Round, list[str]]]:
        """Return each round of a question's loop, and the ids that were called relevant in it."""
        question = self._question(asked)
        known: list[tuple[Candidate, bool]] = []
        made: list[tuple[Round, list[str]]] = []
        for number in range(1, ROUNDS + 1):
            found = self._search(question, asked, known)
            batch = [
                Candidate(one.hit, case_text(one.hit.case)[:CHARACTERS], one.nearness, number)
                for one in found
            ]
            if not batch:
                break
            now = self._round(asked, [one for one, mark in known if mark], batch)
            marked = marks(now).tolist()
            known += zip(batch, marked, strict=True)
            made.append((now, [one.id for one, mark in zip(batch, marked, strict=True) if mark]))
            if not any(marked):
                break
        return made

    def single(self, asked: LabelledQuestion, count: int) -> list[str]:
        """Return the ids that one search of so many cases finds."""
        return [one.hit.case.id for one in self._question(asked).best(count)]

    def _question(self, asked: LabelledQuestion) -> Question:
        if asked.id not in self._questions:
            made = self._store.question(asked.text)
            assert made is not None, "a labelled set has cases"
            self._questions[asked.id] = made
        return self._questions[asked.id]

    def _search(
        self,
        question: Question,
        asked: LabelledQuestion,
        known: Sequence[tuple[Candidate, bool]],
    ) -> list[Found]:
        relevant = [one for one, mark in known if mark]
        key = (asked.id, tuple(one.id for one in relevant), tuple(one.id for one, _ in known))
        if key not in self._found:
            feedback = Feedback(relevant, [one for one, mark in known if not mark])
            self._found[key] = (
                self.strategy.search(question, feedback, MORE_K)
                if known
                else question.best(FIRST_K)
            )
        return self._found[key]

    def _round(
        self, asked: LabelledQuestion, relevant: Sequence[Candidate], batch: Sequence[Candidate]
    ) -> Round:
        ids = tuple(one.id for one in batch)
        key = (asked.id, tuple(one.id for one in relevant), ids)
        if key not in self._rounds:
            rows = feature_rows(JudgeRequest(asked.text, relevant, batch))
            labels = np.array([id_ in asked.relevant for id_ in ids], dtype=np.bool_)
            self._rounds[key] = Round(bool(relevant), ids, rows, labels)
        return self._rounds[key]
