"""The rounds of a feedback loop, walked with labels, and how good a judge is in them."""

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

#: Cases of the first round and of every later one, rounds, and characters that are read of a case:
#: as a loop has them where no limits are given.
FIRST_K, MORE_K, ROUNDS, CHARACTERS = 10, 5, 5, 4_000


@dataclass(frozen=True, slots=True)
class Round:
    """The candidates of a round, with features and labels.

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
        results: list[tuple[Round, list[str]]] = []
        for number in range(1, ROUNDS + 1):
            hits = self._search(question, asked, known)
            batch = [
                Candidate(hit.hit, case_text(hit.hit.case)[:CHARACTERS], hit.nearness, number)
                for hit in hits
            ]
            if not batch:
                break
            now = self._round(asked, [candidate for candidate, mark in known if mark], batch)
            marked = marks(now).tolist()
            known += zip(batch, marked, strict=True)
            results.append(
                (now, [item.id for item, mark in zip(batch, marked, strict=True) if mark])
            )
            if not any(marked):
                break
        return results

    def single(self, asked: LabelledQuestion, count: int) -> list[str]:
        """Return the ids that one search of so many cases finds."""
        return [item.hit.case.id for item in self._question(asked).best(count)]

    def _question(self, asked: LabelledQuestion) -> Question:
        if asked.id not in self._questions:
            result = self._store.question(asked.text)
            assert result is not None, "a labelled set has cases"
            self._questions[asked.id] = result
        return self._questions[asked.id]

    def _search(
        self,
        question: Question,
        asked: LabelledQuestion,
        known: Sequence[tuple[Candidate, bool]],
    ) -> list[Found]:
        relevant = [candidate for candidate, mark in known if mark]
        key = (
            asked.id,
            tuple(item.id for item in relevant),
            tuple(candidate.id for candidate, _ in known),
        )
        if key not in self._found:
            feedback = Feedback(relevant, [candidate for candidate, mark in known if not mark])
            self._found[key] = (
                self.strategy.search(question, feedback, MORE_K)
                if known
                else question.best(FIRST_K)
            )
        return self._found[key]

    def _round(
        self, asked: LabelledQuestion, relevant: Sequence[Candidate], batch: Sequence[Candidate]
    ) -> Round:
        ids = tuple(item.id for item in batch)
        key = (asked.id, tuple(item.id for item in relevant), ids)
        if key not in self._rounds:
            rows = feature_rows(JudgeRequest(asked.text, relevant, batch))
            labels = np.array([id_ in asked.relevant for id_ in ids], dtype=np.bool_)
            self._rounds[key] = Round(bool(relevant), ids, rows, labels)
        return self._rounds[key]


#: Parts of equal width that calibration is looked at in.
BINS = 10


def probabilities(model: JudgeModel, asked: Round) -> NDArray[np.float64]:
    """Return what a model says of a round's candidates, array (n,)."""
    by, names = (model.later, LATER) if asked.later else (model.first, FIRST)
    return by.probabilities(asked.rows, names)


def by_model(model: JudgeModel) -> Marks:
    """Return the marks of a model: what reaches its thresholds."""

    def marks(asked: Round) -> NDArray[np.bool_]:
        threshold = (model.later if asked.later else model.first).threshold
        return probabilities(model, asked) >= threshold

    return marks


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of loops; means over questions.

    Attributes:
        found: Share of the relevant among the judged.
        single: The same for one search that finds as many.
        answer: Share of the relevant that was called relevant.
        precision: Share of all that was called relevant that is.
    """

    judged: float
    found: float
    single: float
    answer: float
    precision: float

    @property
    def gain(self) -> float:
        """Found less single, in points."""
        return 100 * (self.found - self.single)

    @property
    def f1(self) -> float:
        """Harmonic mean of answer and precision."""
        both = self.answer + self.precision
        return 2 * self.answer * self.precision / both if both else 0.0


def outcome(walker: Walker, questions: Sequence[LabelledQuestion], marks: Marks) -> Outcome:
    """Run the loop of every question with these marks."""
    rows, right, called = [], 0, 0
    for asked in questions:
        rounds = walker.rounds(asked, marks)
        seen = [id_ for item, _ in rounds for id_ in item.ids]
        marked = {id_ for _, ids in rounds for id_ in ids}
        ways = (seen, walker.single(asked, len(seen)), marked)
        shares = [len(asked.relevant.intersection(way)) / len(asked.relevant) for way in ways]
        rows.append([len(seen), *shares])
        right += len(asked.relevant & marked)
        called += len(marked)
    judged, result, single, answer = np.mean(rows, axis=0).tolist()
    return Outcome(judged, result, single, answer, right / max(called, 1))


def judge_figures(
    walker: Walker,
    questions: Sequence[LabelledQuestion],
    model: JudgeModel,
    controls: Sequence[JudgeModel],
) -> dict[str, float]:
    """Return figures of a set and strategy; probabilities are those of the loop's own states.

    Args:
        questions: None that the model was trained on.
        controls: The same, trained on shuffled labels, at least one: their mean AUC is over the
            judge's states; the gain is that of the first. They know how often a candidate is
            relevant, in first rounds and in later ones, so that their AUC may be above 0.5.
    """
    ours, best = (outcome(walker, questions, by) for by in (by_model(model), gold))
    shuffled = outcome(walker, questions, by_model(controls[0]))
    states = [item for asked in questions for item, _ in walker.rounds(asked, by_model(model))]
    labels = np.concatenate([state.labels for state in states])
    said = np.concatenate([probabilities(model, state) for state in states])
    blind = [
        auc(np.concatenate([probabilities(control, state) for state in states]), labels)
        for control in controls
    ]
    facts = {
        "judged": ours.judged,
        "found": ours.found,
        "single": ours.single,
        "gain": ours.gain,
        "gain_labels": best.gain,
        "gain_control": shuffled.gain,
        "marked_recall": ours.answer,
        "marked_precision": ours.precision,
        "auc": auc(said, labels),
        "auc_control": float(np.mean(blind)),
        "brier": float(np.mean((said - labels) ** 2)),
        "brier_base_rate": float(labels.mean() * (1 - labels.mean())),
        "ece": calibration_error(said, labels),
    }
    return {"questions": len(questions), **{name: round(v, 4) for name, v in facts.items()}}


def auc(said: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve; 0.5 where all labels are alike."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels, said)) if labels.any() and not labels.all() else 0.5


def calibration_error(said: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    """Return the expected calibration error over bins of equal width.

    Source: Guo et al., "On calibration of modern neural networks" (2017), equation 3.
    """
    bins = np.minimum((said * BINS).astype(int), BINS - 1)
    parts = [bins == number for number in set(bins.tolist())]
    return float(sum(p.mean() * abs(said[p].mean() - labels[p].mean()) for p in parts))
