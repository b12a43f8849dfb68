"""Rounds of feedback loops for labelled questions, and the figures of a judge in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.finetune.judge_data import LabelledQuestion, LabelledSet
from casewright.stores import Found, Question
from casewright.stores.feedback import (
    Candidate,
    Feedback,
    JudgeModel,
    JudgeRequest,
    Strategy,
    case_text,
)
from casewright.stores.feedback.features import FIRST, LATER, feature_rows

#: The defaults of a feedback loop: numbers of cases in the first and in later rounds, of rounds,
#: and of characters of a case.
FIRST_K, MORE_K, ROUNDS, CHARACTERS = 10, 5, 5, 4_000


@dataclass(frozen=True, slots=True)
class Round:
    """The candidates of a round, with features and labels.

    Attributes:
        rows: Features, array (n, f).
        labels: True for relevant candidates, array (n,).
    """

    later: bool
    ids: tuple[str, ...]
    rows: NDArray[np.float64]
    labels: NDArray[np.bool_]


#: Returns flags for the candidates of a round, array (n,): true for relevant.
Marks = Callable[[Round], NDArray[np.bool_]]


def gold(state: Round) -> NDArray[np.bool_]:
    """Return the labels as marks."""
    return state.labels


class Walker:
    """Runs the feedback loops of a set with a strategy; caches searches and features."""

    def __init__(self, labelled: LabelledSet, strategy: Strategy) -> None:
        self.name = labelled.name
        self.strategy = strategy
        self._store = labelled.store
        self._questions: dict[str, Question] = {}
        self._hits: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[Found]] = {}
        self._rounds: dict[tuple[str, tuple[str, ...], tuple[str, ...]], Round] = {}

    def rounds(self, question: LabelledQuestion, marks: Marks) -> list[tuple[Round, list[str]]]:
        """Return each round of a question's loop, and the ids that were marked in it."""
        judged: list[tuple[Candidate, bool]] = []
        results: list[tuple[Round, list[str]]] = []
        for number in range(1, ROUNDS + 1):
            batch = [
                Candidate(found.hit, case_text(found.hit.case)[:CHARACTERS], found.nearness, number)
                for found in self._search(question, judged)
            ]
            if not batch:
                break
            state = self._round(question, [c for c, mark in judged if mark], batch)
            marked = marks(state).tolist()
            judged += zip(batch, marked, strict=True)
            results.append((state, [i for i, mark in zip(state.ids, marked, strict=True) if mark]))
            if not any(marked):
                break
        return results

    def single(self, question: LabelledQuestion, count: int) -> list[str]:
        """Return the ids of a single search for ``count`` cases."""
        return [item.hit.case.id for item in self._question(question).best(count)]

    def _question(self, question: LabelledQuestion) -> Question:
        if question.id not in self._questions:
            result = self._store.question(question.text)
            assert result is not None, "a labelled set has cases"
            self._questions[question.id] = result
        return self._questions[question.id]

    def _search(
        self, question: LabelledQuestion, judged: Sequence[tuple[Candidate, bool]]
    ) -> list[Found]:
        relevant = [candidate for candidate, mark in judged if mark]
        key = (question.id, tuple(c.id for c in relevant), tuple(c.id for c, _ in judged))
        if key not in self._hits:
            feedback = Feedback(relevant, [candidate for candidate, mark in judged if not mark])
            encoded = self._question(question)
            self._hits[key] = (
                self.strategy.search(encoded, feedback, MORE_K) if judged else encoded.best(FIRST_K)
            )
        return self._hits[key]

    def _round(
        self, question: LabelledQuestion, relevant: Sequence[Candidate], batch: Sequence[Candidate]
    ) -> Round:
        ids = tuple(item.id for item in batch)
        key = (question.id, tuple(item.id for item in relevant), ids)
        if key not in self._rounds:
            rows = feature_rows(JudgeRequest(question.text, relevant, batch))
            labels = np.array([id_ in question.relevant for id_ in ids], dtype=np.bool_)
            self._rounds[key] = Round(bool(relevant), ids, rows, labels)
        return self._rounds[key]


#: Number of bins of the calibration error.
BINS = 10


def probabilities(model: JudgeModel, state: Round) -> NDArray[np.float64]:
    """Return a model's probabilities that a round's candidates are relevant, array (n,)."""
    regression, names = (model.later, LATER) if state.later else (model.first, FIRST)
    return regression.probabilities(state.rows, names)


def by_model(model: JudgeModel) -> Marks:
    """Return the marks of a model: true for probabilities of at least its threshold."""

    def marks(state: Round) -> NDArray[np.bool_]:
        threshold = (model.later if state.later else model.first).threshold
        return probabilities(model, state) >= threshold

    return marks


@dataclass(frozen=True, slots=True)
class LoopScore:
    """Results of loops, as means over questions.

    Attributes:
        judged: Number of candidates.
        recall: Share of the relevant cases that were candidates.
        single: The recall of a single search for as many cases.
        marked_recall: Share of the relevant cases that were marked.
        precision: Share of the marked candidates that are relevant.
    """

    judged: float
    recall: float
    single: float
    marked_recall: float
    precision: float

    @property
    def gain(self) -> float:
        """Recall minus the recall of single searches, in points."""
        return 100 * (self.recall - self.single)

    @property
    def f1(self) -> float:
        """Harmonic mean of the marks' recall and precision."""
        total = self.marked_recall + self.precision
        return 2 * self.marked_recall * self.precision / total if total else 0.0


def loop_score(walker: Walker, questions: Sequence[LabelledQuestion], marks: Marks) -> LoopScore:
    """Return the results of the loops of all questions with these marks."""
    rows, right, count = [], 0, 0
    for question in questions:
        rounds = walker.rounds(question, marks)
        seen = [id_ for state, _ in rounds for id_ in state.ids]
        marked = {id_ for _, ids in rounds for id_ in ids}
        relevant = question.relevant
        parts = (seen, walker.single(question, len(seen)), marked)
        rows.append([len(seen), *(len(relevant.intersection(p)) / len(relevant) for p in parts)])
        right += len(relevant & marked)
        count += len(marked)
    judged, recall, single, marked_recall = np.mean(rows, axis=0).tolist()
    return LoopScore(judged, recall, single, marked_recall, right / max(count, 1))


def judge_figures(
    walker: Walker,
    questions: Sequence[LabelledQuestion],
    model: JudgeModel,
    controls: Sequence[JudgeModel],
) -> dict[str, float]:
    """Return figures of a set and strategy on questions that the model was not trained on.

    Probabilities are those in the rounds of the judge's loops. The controls, at least one, are
    judges trained on shuffled labels. ``auc_control`` is their mean, ``gain_control`` is of the
    first one. They learn the shares of relevant candidates in first and in later rounds, so their
    AUC may exceed 0.5.
    """
    score, best, shuffled = (
        loop_score(walker, questions, marks)
        for marks in (by_model(model), gold, by_model(controls[0]))
    )
    states = [item for q in questions for item, _ in walker.rounds(q, by_model(model))]
    labels = np.concatenate([state.labels for state in states])
    own, *others = (
        np.concatenate([probabilities(judge, state) for state in states])
        for judge in (model, *controls)
    )
    facts = {
        "judged": score.judged,
        "found": score.recall,
        "single": score.single,
        "gain": score.gain,
        "gain_labels": best.gain,
        "gain_control": shuffled.gain,
        "marked_recall": score.marked_recall,
        "marked_precision": score.precision,
        "auc": auc(own, labels),
        "auc_control": float(np.mean([auc(control, labels) for control in others])),
        "brier": float(np.mean((own - labels) ** 2)),
        "brier_base_rate": float(labels.mean() * (1 - labels.mean())),
        "ece": calibration_error(own, labels),
    }
    return {"questions": len(questions), **{name: round(v, 4) for name, v in facts.items()}}


def auc(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve; 0.5 if all labels are equal."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels, scores)) if labels.any() and not labels.all() else 0.5


def calibration_error(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """Return the expected calibration error over bins of equal width.

    Source: Guo et al., "On calibration of modern neural networks" (2017), equation 3.
    """
    bins = np.minimum((scores * BINS).astype(int), BINS - 1)
    masks = [bins == number for number in set(bins.tolist())]
    return float(sum(m.mean() * abs(scores[m].mean() - labels[m].mean()) for m in masks))
