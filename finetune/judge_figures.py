"""How good a judge is, on questions that it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.finetune.judge_data import LabelledQuestion
from casewright.finetune.judge_states import Marks, Round, Walker, gold
from casewright.stores.feedback import JudgeModel
from casewright.stores.feedback.features import FIRST, LATER

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
    """What loops found; means over questions.

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
        seen = [id_ for one, _ in rounds for id_ in one.ids]
        marked = {id_ for _, ids in rounds for id_ in ids}
        ways = (seen, walker.single(asked, len(seen)), marked)
        shares = [len(asked.relevant.intersection(way)) / len(asked.relevant) for way in ways]
        rows.append([len(seen), *shares])
        right += len(asked.relevant & marked)
        called += len(marked)
    judged, found, single, answer = np.mean(rows, axis=0).tolist()
    return Outcome(judged, found, single, answer, right / max(called, 1))


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
    states = [one for asked in questions for one, _ in walker.rounds(asked, by_model(model))]
    labels = np.concatenate([one.labels for one in states])
    said = np.concatenate([probabilities(model, one) for one in states])
    blind = [
        auc(np.concatenate([probabilities(control, one) for one in states]), labels)
        for control in controls
    ]
    told = {
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
    return {"questions": len(questions), **{name: round(v, 4) for name, v in told.items()}}


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
