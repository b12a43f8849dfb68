"""Scores by class, as REAPER's Table 1 has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from casewright.finetune.evaluation.verdict import Verdict


@dataclass(frozen=True, slots=True)
class ClassScore:
    """Figures of one class; each from 0 to 1, NaN where there is nothing to measure."""

    name: str
    count: int
    tool_accuracy: float
    argument_accuracy: float
    argument_accuracy_paper: float
    precision: float
    recall: float
    f1: float


def score_classes(verdicts: Sequence[Verdict]) -> list[ClassScore]:
    """Score every gold class, then ``all``: averages over plans, and over classes for F1."""
    names = sorted({verdict.gold for verdict in verdicts})
    scores = [_score(name, verdicts) for name in names]
    overall = ClassScore(
        "all",
        len(verdicts),
        _share([v.tools for v in verdicts]),
        _share([v.arguments for v in verdicts]),
        _share([v.arguments for v in verdicts if v.paper]),
        *(float(np.mean([getattr(s, f) for s in scores])) for f in ("precision", "recall", "f1")),
    )
    return [*scores, overall]


def _score(name: str, verdicts: Sequence[Verdict]) -> ClassScore:
    own = [v for v in verdicts if v.gold == name]
    claimed = [v for v in verdicts if v.predicted == name]
    hits = sum(v.predicted == name for v in own)
    precision = hits / len(claimed) if claimed else 0.0
    recall = hits / len(own)
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return ClassScore(
        name,
        len(own),
        _share([v.tools for v in own]),
        _share([v.arguments for v in own]),
        _share([v.arguments for v in own if v.paper]),
        precision,
        recall,
        f1,
    )


def _share(values: Sequence[bool]) -> float:
    return float(np.mean(values)) if values else float("nan")


def as_row(score: ClassScore) -> Mapping[str, str | int | float | None]:
    """Return a score as a JSON-plain row with short names; what was not measured is null."""
    figures = {
        "tools": score.tool_accuracy,
        "arguments": score.argument_accuracy,
        "arguments_paper": score.argument_accuracy_paper,
        "precision": score.precision,
        "recall": score.recall,
        "f1": score.f1,
    }
    shown = {name: None if np.isnan(v) else round(v, 4) for name, v in figures.items()}
    return {"class": score.name, "count": score.count, **shown}
