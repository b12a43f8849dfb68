"""The figures of planners, each with its interval: of all questions, by class, as differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from casewright.finetune.evaluation.intervals import (
    Floats,
    Resamples,
    f1_interval,
    f1_scores,
    macro,
    percentile_interval,
    shares,
    wilson,
)
from casewright.finetune.evaluation.outcome import (
    ABSENT,
    ARGUMENT,
    STEP,
    Outcome,
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


#: What a figure says that could not have been another.
BY_CONSTRUCTION = "by construction"

#: Name to the words that a table shows, in the order of a table.
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
    "new_class_tools": "new class: tool sequence right",
    "new_class_arguments": "new class: tools and every argument right",
    "new_class_f1": "new class: F1",
    "ms_p50": "milliseconds a plan, median",
    "ms_p95": "milliseconds a plan, 95th percentile",
    "input_tokens": "input tokens a plan",
    "output_tokens": "output tokens a plan",
    "model_steps": "model steps a plan",
}
#: Figures of inventions, by the kind that each is of.
INVENTED = {"invented_steps": STEP, "invented_absent": ABSENT, "invented_arguments": ARGUMENT}
#: Figures that are no shares and no scores.
TIMES_AND_COUNTS = ("ms_p50", "ms_p95", "input_tokens", "output_tokens", "model_steps")


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured number.

    Attributes:
        value: A share from 0 to 1, a score, milliseconds or tokens; ``None`` where nothing was
            measured.
        low: Lower end of the 95 % interval, where there is one.
        high: Upper end.
        count: Of how many items it is.
        note: What must be known to read it.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    count: int = 0
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-plain form."""
        results: dict[str, Any] = {
            "value": _rounded(self.value),
            "low": _rounded(self.low),
            "high": _rounded(self.high),
            "count": self.count,
        }
        return {**results, "note": self.note} if self.note else results


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def share(values: Sequence[bool], note: str = "") -> Figure:
    """Return a share with Wilson's interval; of nothing, a figure without a value."""
    if not values:
        return Figure(None, note=note)
    right = sum(values)
    return Figure(right / len(values), *wilson(right, len(values)), len(values), note)


def planner_figures(
    outcomes: Sequence[Outcome],
    resamples: Resamples,
    *,
    new_class: str = "",
    constrained: bool = False,
) -> dict[str, Figure]:
    """Return the figures of a planner's answers to at least one item, by name; see ``FIGURES``.

    Args:
        outcomes: The answers.
        resamples: For the interval of F1.
        new_class: A class that the planner was not trained on; its figures apart.
        constrained: The planner can name no tool that is not there.
    """
    verdicts = [o.verdict for o in outcomes]
    *classes, overall = score_classes(verdicts)
    named = [score.name for score in classes]
    gold, predicted = [v.gold for v in verdicts], [v.predicted for v in verdicts]
    f1 = macro(f1_scores(gold, predicted, named, resamples))
    count = len(outcomes)
    results = {
        "tools": share([v.tools for v in verdicts]),
        "tools_own": share([o.verdict.tools and o.own for o in outcomes]),
        "arguments": share([v.arguments for v in verdicts]),
        "arguments_paper": share([v.arguments for v in verdicts if v.paper]),
        "graph": share([o.graph for o in outcomes]),
        "graph_arguments": share([o.graph_arguments for o in outcomes]),
        "precision": Figure(overall.precision, count=count),
        "recall": Figure(overall.recall, count=count),
        "f1": Figure(overall.f1, *percentile_interval(f1), count),
        "invalid": share([o.result is not None and not o.own for o in outcomes]),
        "hallucinated": share(
            [bool(o.unknown) for o in outcomes], BY_CONSTRUCTION if constrained else ""
        ),
        "errors": share([o.result is None for o in outcomes]),
    }
    known = known_tools(o.item for o in outcomes)
    invented = [inventions(o.item, o.result, known) for o in outcomes]
    for name, kind in INVENTED.items():
        results[name] = share(
            [kind in item for item in invented], BY_CONSTRUCTION if constrained else ""
        )
    new = [o.verdict for o in outcomes if o.item.new_tools]
    results["new_tool_tools"] = share([v.tools for v in new])
    results["new_tool_arguments"] = share([v.arguments for v in new])
    if new_class:
        own = [v for v in verdicts if v.gold == new_class]
        results["new_class_tools"] = share([v.tools for v in own])
        results["new_class_arguments"] = share([v.arguments for v in own])
        score = next(score for score in classes if score.name == new_class)
        ends = f1_interval(new_class, gold, predicted)
        results["new_class_f1"] = Figure(score.f1, *ends, score.count)
    return {**results, **_costs(outcomes)}


def _costs(outcomes: Sequence[Outcome]) -> dict[str, Figure]:
    results = [o.result for o in outcomes if o.result is not None]
    # A planner that tells no time took some all the same.
    times = [result.milliseconds for result in results if result.milliseconds]
    entries = {
        f"ms_p{rank}": Figure(float(np.percentile(times, rank)), count=len(times))
        if times
        else Figure(None)
        for rank in (50, 95)
    }
    for name, key in (
        ("input_tokens", "input"),
        ("output_tokens", "output"),
        ("model_steps", "model_steps"),
    ):
        facts = [result.tokens[key] for result in results if key in result.tokens]
        entries[name] = Figure(float(np.mean(facts)), count=len(facts)) if facts else Figure(None)
    return entries
