"""Feedback loops for labelled questions, and the figures of a judge in their rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.finetune.judge_sets.sets import LabelledQuestion, LabelledSet
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
    """A round's candidates: ids, features (n, f), and labels (n,) that are true if relevant."""

    later: bool
    ids: tuple[str, ...]
    features: NDArray[np.float64]
    labels: NDArray[np.bool_]


#: Marks the candidates of a round as relevant or not, as a judge does: flags (n,).
Marks = Callable[[Round], NDArray[np.bool_]]


def labels_as_marks(state: Round) -> NDArray[np.bool_]:
    """Return the labels as marks, as a perfect judge."""
    return state.labels


class LoopRunner:
    """Runs the feedback loops of a set with a strategy; caches searches and features."""

    def __init__(self, labelled: LabelledSet, strategy: Strategy) -> None:
        self.labelled, self.strategy = labelled, strategy
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
            result = self.labelled.store.question(question.text)
            assert result is not None, "a labelled set has cases"
            self._questions[question.id] = result
        return self._questions[question.id]

    def _search(
        self, question: LabelledQuestion, judged: Sequence[tuple[Candidate, bool]]
    ) -> list[Found]:
        relevant = [candidate for candidate, mark in judged if mark]
        key = (question.id, tuple(c.id for c in relevant), tuple(c.id for c, _ in judged))
        if key not in self._hits:
            marked = Feedback(relevant, [candidate for candidate, mark in judged if not mark])
            encoded = self._question(question)
            self._hits[key] = (
                self.strategy.search(encoded, marked, MORE_K) if judged else encoded.best(FIRST_K)
            )
        return self._hits[key]

    def _round(
        self, question: LabelledQuestion, relevant: Sequence[Candidate], batch: Sequence[Candidate]
    ) -> Round:
        ids = tuple(item.id for item in batch)
        key = (question.id, tuple(item.id for item in relevant), ids)
        if key not in self._rounds:
            features = feature_rows(JudgeRequest(question.text, relevant, batch))
            labels = np.array([id_ in question.relevant for id_ in ids], dtype=np.bool_)
            self._rounds[key] = Round(bool(relevant), ids, features, labels)
        return self._rounds[key]


#: Number of bins of the calibration error.
BINS = 10


def probabilities(model: JudgeModel, state: Round) -> NDArray[np.float64]:
    """Return a model's probabilities that a round's candidates are relevant, array (n,)."""
    regression, names = (model.later, LATER) if state.later else (model.first, FIRST)
    return regression.probabilities(state.features, names)


def marks_of_model(model: JudgeModel) -> Marks:
    """Return the marks of a model: true for probabilities of at least its threshold."""

    def marks(state: Round) -> NDArray[np.bool_]:
        threshold = (model.later if state.later else model.first).threshold
        return probabilities(model, state) >= threshold

    return marks


@dataclass(frozen=True, slots=True)
class LoopScore:
    """Results of loops: means over questions, but ``precision`` over all marked candidates.

    Attributes:
        judged: Number of candidates.
        recall: Share of the relevant cases that were candidates.
        single: The recall of a single search that returns as many cases.
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


def loop_score(
    runner: LoopRunner, questions: Sequence[LabelledQuestion], marks: Marks
) -> LoopScore:
    """Return the results of the loops of all questions with these marks."""
    rows, right, count = [], 0, 0
    for question in questions:
        rounds = runner.rounds(question, marks)
        judged = [id_ for state, _ in rounds for id_ in state.ids]
        marked = {id_ for _, ids in rounds for id_ in ids}
        relevant = question.relevant
        found = (judged, runner.single(question, len(judged)), marked)
        recalls = (len(relevant.intersection(ids)) / len(relevant) for ids in found)
        rows.append([len(judged), *recalls])
        right += len(relevant & marked)
        count += len(marked)
    judged_count, recall, single, marked_recall = np.mean(rows, axis=0).tolist()
    return LoopScore(judged_count, recall, single, marked_recall, right / max(count, 1))


def judge_figures(
    runner: LoopRunner,
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
    score, perfect, control = (
        loop_score(runner, questions, marks)
        for marks in (marks_of_model(model), labels_as_marks, marks_of_model(controls[0]))
    )
    states = [item for q in questions for item, _ in runner.rounds(q, marks_of_model(model))]
    labels = np.concatenate([state.labels for state in states])
    scores, *control_scores = (
        np.concatenate([probabilities(judge, state) for state in states])
        for judge in (model, *controls)
    )
    facts = {
        "judged": score.judged,
        "found": score.recall,
        "single": score.single,
        "gain": score.gain,
        "gain_labels": perfect.gain,
        "gain_control": control.gain,
        "marked_recall": score.marked_recall,
        "marked_precision": score.precision,
        "auc": auc(scores, labels),
        "auc_control": float(np.mean([auc(each, labels) for each in control_scores])),
        "brier": float(np.mean((scores - labels) ** 2)),
        "brier_base_rate": float(labels.mean() * (1 - labels.mean())),
        "ece": calibration_error(scores, labels),
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
