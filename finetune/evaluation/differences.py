"""By how much planners differ from the first, over the same resamples of the same items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from casewright.finetune.evaluation.intervals import (
    Floats,
    Resamples,
    f1_scores,
    macro,
    percentile_interval,
    shares,
)
from casewright.finetune.evaluation.outcome import Outcome
from casewright.finetune.evaluation.scores import score_classes

#: What is compared, by the names of ``FIGURES``.
COMPARED = ("tools", "arguments", "graph", "graph_arguments", "f1")


def differences(
    outcomes: Mapping[str, Sequence[Outcome]], resamples: Resamples
) -> list[dict[str, Any]]:
    """Return, for each planner but the first and each figure, its difference from the first's.

    A row is ``{"planner", "against", "figure", "difference", "low", "high"}``; low and high are the
    95 % interval of a paired bootstrap. Where it does not hold 0, the planners differ.
    """
    first, *others = outcomes
    base = {name: _sampled(outcomes[first], name, resamples) for name in COMPARED}
    rows: list[dict[str, Any]] = []
    for planner in others:
        for name in COMPARED:
            sampled = _sampled(outcomes[planner], name, resamples) - base[name]
            low, high = percentile_interval(sampled)
            difference = _value(outcomes[planner], name) - _value(outcomes[first], name)
            rows.append(
                {
                    "planner": planner,
                    "against": first,
                    "figure": name,
                    "difference": round(difference, 4),
                    "low": round(low, 4),
                    "high": round(high, 4),
                }
            )
    return rows


def _right(outcomes: Sequence[Outcome], name: str) -> list[bool]:
    if name in ("graph", "graph_arguments"):
        return [bool(getattr(o, name)) for o in outcomes]
    return [bool(getattr(o.verdict, name)) for o in outcomes]


def _sampled(outcomes: Sequence[Outcome], name: str, resamples: Resamples) -> Floats:
    if name != "f1":
        return shares(_right(outcomes, name), resamples)
    gold = [o.verdict.gold for o in outcomes]
    predicted = [o.verdict.predicted for o in outcomes]
    return macro(f1_scores(gold, predicted, sorted(set(gold)), resamples))


def _value(outcomes: Sequence[Outcome], name: str) -> float:
    if name == "f1":
        return score_classes([o.verdict for o in outcomes])[-1].f1
    right = _right(outcomes, name)
    return sum(right) / len(right)
