"""The calibration of a planner's confidence, and its accuracy against coverage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from casewright.finetune.evaluation.outcome import Outcome

#: Shares of the messages, the surest first, whose accuracy is a row.
COVERAGES = (0.25, 0.5, 0.75, 0.9, 1.0)
#: Groups of messages of similar confidence, as many in each, for the calibration.
BINS = 8


@dataclass(frozen=True, slots=True)
class Confidences:
    """Plans of one planner with a confidence, the surest first.

    Attributes:
        values: Of each plan, from 0 to 1.
        right: True where the plan's graph with all arguments is the gold one.
        asks: True where the planner asks back.
    """

    values: tuple[float, ...]
    right: tuple[bool, ...]
    asks: tuple[bool, ...]

    def error(self) -> float:
        """Return the expected calibration error (Guo et al. 2017), over bins of equal size."""
        parts = self.bins()
        return sum(size * abs(said - share) for said, share, size in parts) / len(self.values)

    def bins(self) -> list[tuple[float, float, int]]:
        """Return mean confidence, share of right plans and size of each bin."""
        groups = np.array_split(np.arange(len(self.values)), min(BINS, len(self.values)))
        said, right = np.array(self.values), np.array(self.right)
        return [(float(said[own].mean()), float(right[own].mean()), len(own)) for own in groups]


def confidences(outcomes: Sequence[Outcome]) -> Confidences | None:
    """Return a planner's confidence in its plans; ``None`` where it has none."""
    plans = [
        (result.confidence, outcome.graph_arguments, result.asks_back)
        for outcome in outcomes
        if (result := outcome.result) is not None and result.confidence is not None
    ]
    if not plans:
        return None
    return Confidences(*zip(*sorted(plans, key=lambda row: -row[0]), strict=True))


def confidence_rows(planner: str, own: Confidences) -> list[dict[str, Any]]:
    """Return rows by coverage: the least confidence, and the share of right plans above it."""
    count = len(own.values)
    kept = [max(1, round(coverage * count)) for coverage in COVERAGES]
    return [
        {
            "planner": planner,
            "coverage": coverage,
            "confidence at least": round(own.values[size - 1], 3),
            "whole plans": round(sum(own.right[:size]) / size, 3),
        }
        for coverage, size in zip(COVERAGES, kept, strict=True)
    ]


def confidence_figures(planner: str, own: Confidences) -> dict[str, float]:
    """Return calibration error, the share asked back, and how many of these plans are wrong."""
    wrong = [not right for right, asks in zip(own.right, own.asks, strict=True) if asks]
    figures = {
        f"calibration error, {planner}": own.error(),
        f"asked back, share, {planner}": sum(own.asks) / len(own.asks),
    }
    if wrong:
        figures[f"of these wrong, share, {planner}"] = sum(wrong) / len(wrong)
    return figures


def drawn(planners: Mapping[str, Confidences]) -> Callable[[Any], None]:
    """Return a function that draws the reliability curve of each planner."""

    def draw(axes: Any) -> None:
        axes.plot([0, 1], [0, 1], color="0.7", linestyle=":", label="as sure as right")
        for name, own in planners.items():
            said, right, _ = zip(*own.bins(), strict=True)
            axes.plot(said, right, marker="o", label=name)
        axes.set_xlabel("confidence")
        axes.set_ylabel("whole plans, share")
        axes.legend()

    return draw
