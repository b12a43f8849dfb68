"""The scores of one planner by class, with intervals, as JSON-plain rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from casewright.finetune.evaluation.intervals import (
    Resamples,
    f1_scores,
    macro,
    percentile_interval,
    wilson,
)
from casewright.finetune.evaluation.outcome import Outcome
from casewright.finetune.evaluation.scores import as_row, score_classes


def class_rows(
    planner: str, outcomes: Sequence[Outcome], resamples: Resamples
) -> list[dict[str, Any]]:
    """Return a row a gold class, then ``all``; ``…_low`` and ``…_high`` are 95 % intervals.

    Wilson's for shares, the bootstrap's percentiles for F1.
    """
    verdicts = [o.verdict for o in outcomes]
    scores = score_classes(verdicts)
    names = [score.name for score in scores[:-1]]
    sampled = f1_scores(
        [v.gold for v in verdicts], [v.predicted for v in verdicts], names, resamples
    )
    columns = [*(sampled[:, i] for i in range(len(names))), macro(sampled)]
    rows = []
    for score, column in zip(scores, columns, strict=True):
        own = [v for v in verdicts if score.name in (v.gold, "all")]
        row: dict[str, Any] = {"planner": planner, **as_row(score)}
        for name, right in (
            ("tools", sum(v.tools for v in own)),
            ("arguments", sum(v.arguments for v in own)),
        ):
            row |= _interval(name, wilson(right, len(own)))
        rows.append(row | _interval("f1", percentile_interval(column)))
    return rows


def _interval(name: str, ends: tuple[float, float]) -> dict[str, float]:
    return {f"{name}_low": round(ends[0], 4), f"{name}_high": round(ends[1], 4)}
