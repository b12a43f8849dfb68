"""RAGSys's measures of what demonstrations do to a model (Contal and McGoldrick 2024, section 5).

Where its names and those of TruthfulQA (Lin et al. 2022) differ, both stand beside each other:

- ``mc1``: whether the best answer is likelier than every wrong one; TruthfulQA's MC1 as well.
- ``share_above``: the share of right answers that are likelier than every wrong one. The paper's
  MC2 is TruthfulQA's own MC3.
- ``mass_ratio``: Σp(a) / Σp(ā) over right and wrong answers, as the paper prints its MC3; without
  bound.
- ``mass``: Σp(a) / (Σp(a) + Σp(ā)), from 0 to 1. It is what the paper's tables of MC3 look like,
  and TruthfulQA's own MC2.
- ``margins``: Δ = log p(a|q,C)/p(a|q) − log p(ā|q,C)/p(ā|q) of each right and each wrong answer:
  above 0 where demonstrations help. The paper's DPO is log σ(Δ) with β = 1, which never is.

All numbers have double precision; probabilities are kept as natural logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The measures of one question.

    Attributes:
        margins: Δ of each right answer with each wrong one, array (right, wrong); where there are
            no wrong ones, log p(a|q,C)/p(a|q) of each right one, array (right, 1).
        mc1: 1.0 or 0.0; ``None`` without wrong answers, as the three that follow.
        share_above: From 0 to 1.
        mass_ratio: At least 0; infinite where it is larger than a float can be.
        mass: From 0 to 1.
    """

    margins: Floats
    mc1: float | None
    share_above: float | None
    mass_ratio: float | None
    mass: float | None

    @property
    def preferences(self) -> Floats:
        """Return log σ of each margin, below 0."""
        return log_sigmoid(self.margins)

    @property
    def margin(self) -> float:
        """Return the mean of the margins."""
        return float(self.margins.mean())

    @property
    def preference(self) -> float:
        """Return the mean of log σ of the margins."""
        return float(self.preferences.mean())


def measure(
    right: Sequence[float],
    wrong: Sequence[float],
    right_alone: Sequence[float],
    wrong_alone: Sequence[float],
    best: int = 0,
) -> Verdicts:
    """Return the measures of one question.

    Args:
        right: Log-probability of each right answer, given the question and its demonstrations.
        wrong: The same of each wrong answer; there may be none.
        right_alone: Of each right answer, given the question alone.
        best: Which of the right answers is the best one.

    Raises:
        InputError: There is no right answer, the lengths differ, or a number is no finite one.
    """
    r, w, r0, w0 = (
        np.asarray(numbers, dtype=np.float64)
        for numbers in (right, wrong, right_alone, wrong_alone)
    )
    if not len(r) or len(r) != len(r0) or len(w) != len(w0) or not 0 <= best < len(r):
        raise InputError(
            f"A question has {len(r)} right and {len(w)} wrong answers with demonstrations, and "
            f"{len(r0)} and {len(w0)} without; the best is number {best}. Give at least one right "
            "answer, and the same answers both times."
        )
    if not all(np.isfinite(numbers).all() for numbers in (r, w, r0, w0)):
        raise InputError("A log-probability is no finite number. Score the answers again.")
    if not len(w):
        return Verdicts((r - r0)[:, None], None, None, None, None)
    above = w.max()
    apart = np.logaddexp.reduce(r) - np.logaddexp.reduce(w)
    with np.errstate(over="ignore"):
        ratio = float(np.exp(apart))
    return Verdicts(
        margins=(r - r0)[:, None] - (w - w0)[None, :],
        mc1=float(r[best] > above),
        share_above=float((r > above).mean()),
        mass_ratio=ratio,
        # σ of the difference of the logarithms is the share, and overflows nowhere.
        mass=float(np.exp(log_sigmoid(np.asarray(apart)))),
    )


def log_sigmoid(numbers: Floats) -> Floats:
    """Return log σ(x), exact for any size of x."""
    from scipy.special import log_expit

    found: Floats = np.asarray(log_expit(np.asarray(numbers, dtype=np.float64)))
    return found
