"""The scores of one planner by class, with intervals, as JSON-plain rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from casewright.finetune.evaluation.intervals import (
    Resamples,
    f1_interval,
    f1_scores,
    macro,
    percentile_interval,
    wilson,
)
from casewright.finetune.evaluation.outcome import Outcome
from casewright.finetune.evaluation.scores import ClassScore, as_row, score_classes
from casewright.finetune.evaluation.verdict import Verdict


def class_rows(
    planner: str, outcomes: Sequence[Outcome], resamples: Resamples
) -> list[dict[str, Any]]:
    """Return a row a gold class, then ``all``; ``…_low`` and ``…_high`` are 95 % intervals.

    Wilson's for shares and for a class's F1, the bootstrap's percentiles for the mean F1.
    """
    verdicts = [o.verdict for o in outcomes]
    *classes, overall = score_classes(verdicts)
    gold, predicted = [v.gold for v in verdicts], [v.predicted for v in verdicts]
    rows = [
        _row(
            planner,
            score,
            [v for v in verdicts if v.gold == score.name],
            f1_interval(score.name, gold, predicted),
        )
        for score in classes
    ]
    mean = macro(f1_scores(gold, predicted, [score.name for score in classes], resamples))
    return [*rows, _row(planner, overall, verdicts, percentile_interval(mean))]


def _row(
    planner: str, score: ClassScore, own: Sequence[Verdict], f1: tuple[float, float]
) -> dict[str, Any]:
    row: dict[str, Any] = {"planner": planner, **as_row(score)}
    for name, ends in (
        ("tools", wilson(sum(v.tools for v in own), len(own))),
        ("arguments", wilson(sum(v.arguments for v in own), len(own))),
        ("f1", f1),
    ):
        row |= {f"{name}_low": round(ends[0], 4), f"{name}_high": round(ends[1], 4)}
    return row
