"""The figures of planners, each with its interval: of all questions, by class, as differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from casewright.finetune.evaluation.intervals import (
    Floats,
    Resamples,
    f1_interval,
    f1_scores,
    percentile_interval,
    shares,
    wilson,
)
from casewright.finetune.evaluation.outcome import (
    ABSENT,
    ARGUMENT,
    STEP,
    PlanOutcome,
    inventions,
    known_tools,
)
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
    scores = []
    for name in sorted({verdict.gold for verdict in verdicts}):
        members = [v for v in verdicts if v.gold == name]
        claims = sum(v.predicted == name for v in verdicts)
        hits = sum(v.predicted == name for v in members)
        precision, recall = hits / claims if claims else 0.0, hits / len(members)
        f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
        scores.append(_class_score(name, members, precision, recall, f1))
    means = (
        float(np.mean([getattr(score, name) for score in scores]))
        for name in ("precision", "recall", "f1")
    )
    return [*scores, _class_score("all", verdicts, *means)]


def _class_score(name: str, verdicts: Sequence[Verdict], *rates: float) -> ClassScore:
    accuracies = (
        float(np.mean(values)) if values else float("nan")
        for values in (
            [v.tools for v in verdicts],
            [v.arguments for v in verdicts],
            [v.arguments for v in verdicts if v.paper],
        )
    )
    return ClassScore(name, len(verdicts), *accuracies, *rates)


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
    rounded = {name: None if np.isnan(v) else round(v, 4) for name, v in figures.items()}
    return {"class": score.name, "count": score.count, **rounded}


def _classes(verdicts: Sequence[Verdict]) -> tuple[list[str], list[str]]:
    """Return the gold classes and the predicted ones."""
    return [v.gold for v in verdicts], [v.predicted for v in verdicts]


def _mean_f1(verdicts: Sequence[Verdict], resamples: Resamples) -> Floats:
    """Return the mean F1 over classes in each resample, array (resamples,)."""
    gold, predicted = _classes(verdicts)
    result: Floats = f1_scores(gold, predicted, sorted(set(gold)), resamples).mean(axis=1)
    return result


def class_rows(
    planner: str, outcomes: Sequence[PlanOutcome], resamples: Resamples
) -> list[dict[str, Any]]:
    """Return a row a gold class, then ``all``; ``…_low`` and ``…_high`` are 95 % intervals.

    Wilson's for shares and for a class's F1, the bootstrap's percentiles for the mean F1.
    """
    verdicts = [o.verdict for o in outcomes]
    gold, predicted = _classes(verdicts)
    *classes, overall = score_classes(verdicts)
    parts: list[tuple[ClassScore, Sequence[Verdict], tuple[float, float]]] = []
    for score in classes:
        interval = f1_interval(score.name, gold, predicted)
        parts.append((score, [v for v in verdicts if v.gold == score.name], interval))
    parts.append((overall, verdicts, percentile_interval(_mean_f1(verdicts, resamples))))
    rows = []
    for score, members, f1 in parts:
        row: dict[str, Any] = {"planner": planner, **as_row(score)}
        for name, (low, high) in (
            ("tools", wilson(sum(v.tools for v in members), len(members))),
            ("arguments", wilson(sum(v.arguments for v in members), len(members))),
            ("f1", f1),
        ):
            row |= {f"{name}_low": round(low, 4), f"{name}_high": round(high, 4)}
        rows.append(row)
    return rows


#: The figures that are compared, by the names of ``FIGURES``.
COMPARED = ("tools", "arguments", "graph", "graph_arguments", "f1")


def differences(
    outcomes: Mapping[str, Sequence[PlanOutcome]], resamples: Resamples
) -> list[dict[str, Any]]:
    """Return each planner's difference from the first planner, for every figure.

    A row is ``{"planner", "against", "figure", "difference", "low", "high"}``; low and high are the
    95 % interval of a paired bootstrap. Where it does not hold 0, the planners differ.
    """
    first, *others = outcomes
    base = {name: _compared(outcomes[first], name, resamples) for name in COMPARED}
    rows: list[dict[str, Any]] = []
    for planner in others:
        for name in COMPARED:
            value, samples = _compared(outcomes[planner], name, resamples)
            low, high = percentile_interval(samples - base[name][1])
            rows.append(
                {
                    "planner": planner,
                    "against": first,
                    "figure": name,
                    "difference": round(value - base[name][0], 4),
                    "low": round(low, 4),
                    "high": round(high, 4),
                }
            )
    return rows


def _compared(
    outcomes: Sequence[PlanOutcome], name: str, resamples: Resamples
) -> tuple[float, Floats]:
    """Return a figure, and its values over resamples."""
    verdicts = [o.verdict for o in outcomes]
    if name == "f1":
        return score_classes(verdicts)[-1].f1, _mean_f1(verdicts, resamples)
    sources = outcomes if name in ("graph", "graph_arguments") else verdicts
    right = [bool(getattr(source, name)) for source in sources]
    return sum(right) / len(right), shares(right, resamples)


#: The note of a figure that could not have been another.
BY_CONSTRUCTION = "by construction"

#: Names of figures to their titles, in the order of a table.
FIGURES: Mapping[str, str] = {
    "tools": "tool sequence right",
    "tools_own": "tool sequence right, fallback plans counted as wrong",
    "arguments": "tools and every argument right",
    "arguments_paper": "the same, of plans with prod_search or shipment_status",
    "graph": "plan graph right, by tools",
    "graph_arguments": "plan graph right, by tools and arguments",
    "precision": "precision, mean over classes",
    "recall": "recall, mean over classes",
    "f1": "F1, mean over classes",
    "invalid": "answered by a fallback, or invalid",
    "hallucinated": "names a tool that is not there",
    "invented_steps": "invents a step: a tool that no toolbox has",
    "invented_absent": "invents a step: a tool that other toolboxes have",
    "invented_arguments": "tools there, invents an argument",
    "errors": "raised an error",
    "only_provided": "a needed tool removed: only provided tools used",
    "new_tool_tools": "new tool: tool sequence right",
    "new_tool_arguments": "new tool: tools and every argument right",
    "ms_p50": "milliseconds a plan, median",
    "ms_p95": "milliseconds a plan, 95th percentile",
    "input_tokens": "input tokens a plan",
    "output_tokens": "output tokens a plan",
    "model_steps": "model steps a plan",
}
#: Figures that are no shares and no scores.
TIMES_AND_COUNTS = ("ms_p50", "ms_p95", "input_tokens", "output_tokens", "model_steps")


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured number.

    Attributes:
        value: A share from 0 to 1, a score, milliseconds or tokens; ``None`` where nothing was
            measured.
        low, high: The 95 % interval, where there is one.
        count: Number of items that were measured.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    count: int = 0
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-plain form."""
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        rounded = {n: None if v is None else round(v, 4) for n, v in numbers.items()}
        return {**rounded, "count": self.count, **({"note": self.note} if self.note else {})}


def share(values: Sequence[bool], note: str = "") -> Figure:
    """Return a share with Wilson's interval; of nothing, a figure without a value."""
    if not values:
        return Figure(None, note=note)
    right = sum(values)
    return Figure(right / len(values), *wilson(right, len(values)), len(values), note)


def planner_figures(
    outcomes: Sequence[PlanOutcome],
    resamples: Resamples,
    *,
    constrained: bool = False,
) -> dict[str, Figure]:
    """Return the figures of a planner's answers to at least one item, by name; see ``FIGURES``.

    ``constrained``: the planner can name no tool outside the toolbox.
    """
    verdicts = [o.verdict for o in outcomes]
    overall = score_classes(verdicts)[-1]
    f1 = percentile_interval(_mean_f1(verdicts, resamples))
    count, note = len(outcomes), BY_CONSTRUCTION if constrained else ""
    results = {
        "tools": share([v.tools for v in verdicts]),
        "tools_own": share([o.verdict.tools and o.own for o in outcomes]),
        "arguments": share([v.arguments for v in verdicts]),
        "arguments_paper": share([v.arguments for v in verdicts if v.paper]),
        "graph": share([o.graph for o in outcomes]),
        "graph_arguments": share([o.graph_arguments for o in outcomes]),
        "precision": Figure(overall.precision, count=count),
        "recall": Figure(overall.recall, count=count),
        "f1": Figure(overall.f1, *f1, count),
        "invalid": share([o.result is not None and not o.own for o in outcomes]),
        "hallucinated": share([bool(o.unknown) for o in outcomes], note),
        "errors": share([o.result is None for o in outcomes]),
    }
    known = known_tools(o.item for o in outcomes)
    kinds = [inventions(o.item, o.result, known) for o in outcomes]
    for name, kind in (("steps", STEP), ("absent", ABSENT), ("arguments", ARGUMENT)):
        results[f"invented_{name}"] = share([kind in own for own in kinds], note)
    new = [o.verdict for o in outcomes if o.item.new_tools]
    results["new_tool_tools"] = share([v.tools for v in new])
    results["new_tool_arguments"] = share([v.arguments for v in new])
    return {**results, **_costs(outcomes)}


def _costs(outcomes: Sequence[PlanOutcome]) -> dict[str, Figure]:
    results = [o.result for o in outcomes if o.result is not None]
    # A planner that reports no time took some all the same.
    times = [result.milliseconds for result in results if result.milliseconds]
    figures = {
        "ms_p50": _summary(times, lambda values: np.percentile(values, 50)),
        "ms_p95": _summary(times, lambda values: np.percentile(values, 95)),
    }
    for name, key in (
        ("input_tokens", "input"),
        ("output_tokens", "output"),
        ("model_steps", "model_steps"),
    ):
        figures[name] = _summary([r.tokens[key] for r in results if key in r.tokens], np.mean)
    return figures


def _summary(values: Sequence[float], function: Callable[[Any], Any]) -> Figure:
    return Figure(float(function(values)), count=len(values)) if values else Figure(None)
