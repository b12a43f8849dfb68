"""Figures of planners, in total and by class, and differences between planners; with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from casewright.finetune.evaluation import intervals
from casewright.finetune.evaluation.intervals import Floats, Resamples
from casewright.finetune.evaluation.outcome import ABSENT, ARGUMENT, STEP, PlanOutcome
from casewright.finetune.evaluation.verdict import Verdict


@dataclass(frozen=True, slots=True)
class ClassScore:
    """Figures of one class, or of ``all`` classes; NaN if there is no plan to measure."""

    name: str
    count: int
    tool_accuracy: float
    argument_accuracy: float
    argument_accuracy_paper: float  # of queries whose gold plan has a tool of PAPER_ARGUMENT_TOOLS
    precision: float
    recall: float
    f1: float


def score_classes(verdicts: Sequence[Verdict]) -> list[ClassScore]:
    """Return the scores of every gold class, then of ``all`` classes.

    In ``all``, accuracies are means over plans; precision, recall and F1 are means over classes.
    """
    scores = []
    for name in sorted({verdict.gold for verdict in verdicts}):
        members = [verdict for verdict in verdicts if verdict.gold == name]
        predictions = sum(verdict.predicted == name for verdict in verdicts)
        hits = sum(verdict.predicted == name for verdict in members)
        precision, recall = hits / predictions if predictions else 0.0, hits / len(members)
        f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
        scores.append(_class_score(name, members, precision, recall, f1))
    means = np.mean([(score.precision, score.recall, score.f1) for score in scores], axis=0)
    return [*scores, _class_score("all", verdicts, *map(float, means))]


def _class_score(name: str, verdicts: Sequence[Verdict], *precision_recall_f1: float) -> ClassScore:
    tools, arguments = [v.right_tools for v in verdicts], [v.right_arguments for v in verdicts]
    flag_lists = tools, arguments, [v.right_arguments for v in verdicts if v.in_paper]
    accuracies = (float(np.mean(flags)) if flags else float("nan") for flags in flag_lists)
    return ClassScore(name, len(verdicts), *accuracies, *precision_recall_f1)


def as_row(score: ClassScore) -> Mapping[str, str | int | float | None]:
    """Return a score as a row of JSON types with short column names; NaN becomes ``None``."""
    names = ("tools", "arguments", "arguments_paper", "precision", "recall", "f1")
    values = zip(names, astuple(score)[2:], strict=True)
    rounded = {name: None if np.isnan(value) else round(value, 4) for name, value in values}
    return {"class": score.name, "count": score.count, **rounded}


def _mean_f1(verdicts: Sequence[Verdict], resamples: Resamples) -> Floats:
    """Return the mean F1 over classes in each resample, array (resamples,)."""
    gold, predicted = [v.gold for v in verdicts], [v.predicted for v in verdicts]
    scores: Floats = intervals.f1_scores(gold, predicted, sorted(set(gold)), resamples).mean(axis=1)
    return scores


def class_rows(
    planner: str, outcomes: Sequence[PlanOutcome], resamples: Resamples
) -> list[dict[str, Any]]:
    """Return one row for each gold class and for ``all``, with 95 % intervals.

    ``…_low`` and ``…_high`` are the ends of Wilson's interval for shares and for a class's F1, and
    of the bootstrap's interval for the mean F1.
    """
    verdicts = [outcome.verdict for outcome in outcomes]
    gold, predicted = [v.gold for v in verdicts], [v.predicted for v in verdicts]
    *classes, overall = score_classes(verdicts)
    rows = []
    for score in (*classes, overall):
        if score is overall:
            members = verdicts
            f1_interval = intervals.percentile_interval(_mean_f1(verdicts, resamples))
        else:
            members = [v for v in verdicts if v.gold == score.name]
            f1_interval = intervals.f1_interval(score.name, gold, predicted)
        tools_interval = intervals.wilson(sum(v.right_tools for v in members), len(members))
        arguments_interval = intervals.wilson(sum(v.right_arguments for v in members), len(members))
        row: dict[str, Any] = {"planner": planner, **as_row(score)}
        ends = {"tools": tools_interval, "arguments": arguments_interval, "f1": f1_interval}
        for name, (low, high) in ends.items():
            row |= {f"{name}_low": round(low, 4), f"{name}_high": round(high, 4)}
        rows.append(row)
    return rows


#: Keys of ``FIGURES``: the figures that ``differences`` compares.
COMPARED = ("tools", "arguments", "graph", "graph_arguments", "f1")


def differences(
    outcomes: Mapping[str, Sequence[PlanOutcome]], resamples: Resamples
) -> list[dict[str, Any]]:
    """Return each planner's difference from the first planner, for every compared figure.

    A row is ``{"planner", "against", "figure", "difference", "low", "high"}``; low and high are the
    95 % interval of a paired bootstrap. A difference is significant if its interval excludes 0.
    """
    first, *others = outcomes
    first_figures = {name: _compared_figure(outcomes[first], name, resamples) for name in COMPARED}
    rows: list[dict[str, Any]] = []
    for planner, name in product(others, COMPARED):
        value, resampled = _compared_figure(outcomes[planner], name, resamples)
        first_value, first_resampled = first_figures[name]
        low, high = intervals.percentile_interval(resampled - first_resampled)
        numbers = {"difference": value - first_value, "low": low, "high": high}
        rounded = {key: round(number, 4) for key, number in numbers.items()}
        rows.append({"planner": planner, "against": first, "figure": name, **rounded})
    return rows


def _compared_figure(
    outcomes: Sequence[PlanOutcome], name: str, resamples: Resamples
) -> tuple[float, Floats]:
    """Return one of the ``COMPARED`` figures, and its values over the resamples."""
    verdicts = [outcome.verdict for outcome in outcomes]
    if name == "f1":
        return score_classes(verdicts)[-1].f1, _mean_f1(verdicts, resamples)
    if name in ("graph", "graph_arguments"):
        flags = [bool(getattr(outcome, name)) for outcome in outcomes]
    else:
        flags = [bool(getattr(verdict, f"right_{name}")) for verdict in verdicts]
    return sum(flags) / len(flags), intervals.shares(flags, resamples)


#: The note of a figure whose value a grammar or a check of every plan determines.
BY_CONSTRUCTION = "by construction"

#: Titles of figures by their names, in the order of a table.
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
    "invented_arguments": "all tools exist, but an argument is invented",
    "errors": "raised an error",
    "only_provided": "a needed tool is removed: only provided tools are used",
    "new_tool_tools": "new tool: tool sequence right",
    "new_tool_arguments": "new tool: tools and every argument right",
    "ms_p50": "milliseconds a plan, median",
    "ms_p95": "milliseconds a plan, 95th percentile",
    "input_tokens": "input tokens a plan",
    "output_tokens": "output tokens a plan",
    "model_steps": "model steps a plan",
}
#: Names of the figures that are neither shares nor scores.
TIMES_AND_COUNTS = ("ms_p50", "ms_p95", "input_tokens", "output_tokens", "model_steps")


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured number.

    Attributes:
        value: A share from 0 to 1, a score, milliseconds or tokens; ``None`` if not measured.
        low, high: The 95 % interval, if the figure has one.
        count: Number of measured items.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    count: int = 0
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the figure as an object of JSON types."""
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        rounded = {name: None if x is None else round(x, 4) for name, x in numbers.items()}
        return {**rounded, "count": self.count, **({"note": self.note} if self.note else {})}


def share_of(values: Sequence[bool], note: str = "") -> Figure:
    """Return the share of true values with Wilson's interval; an empty figure if there are none."""
    if not values:
        return Figure(None, note=note)
    hits = sum(values)
    return Figure(hits / len(values), *intervals.wilson(hits, len(values)), len(values), note)


def planner_figures(
    outcomes: Sequence[PlanOutcome], resamples: Resamples, *, constrained: bool = False
) -> dict[str, Figure]:
    """Return a planner's figures by name (a key of ``FIGURES``), from at least one outcome.

    A ``constrained`` planner cannot name a tool outside the toolbox.
    """
    verdicts = [o.verdict for o in outcomes]
    overall = score_classes(verdicts)[-1]
    f1 = intervals.percentile_interval(_mean_f1(verdicts, resamples))
    count, note = len(outcomes), BY_CONSTRUCTION if constrained else ""
    figures = {
        "tools": share_of([verdict.right_tools for verdict in verdicts]),
        "tools_own": share_of([o.verdict.right_tools and o.is_own_plan for o in outcomes]),
        "arguments": share_of([verdict.right_arguments for verdict in verdicts]),
        "arguments_paper": share_of(
            [verdict.right_arguments for verdict in verdicts if verdict.in_paper]
        ),
        "graph": share_of([o.graph for o in outcomes]),
        "graph_arguments": share_of([o.graph_arguments for o in outcomes]),
        "precision": Figure(overall.precision, count=count),
        "recall": Figure(overall.recall, count=count),
        "f1": Figure(overall.f1, *f1, count),
        "invalid": share_of([o.result is not None and not o.is_own_plan for o in outcomes]),
        "hallucinated": share_of([bool(o.unknown_tools) for o in outcomes], note),
        "errors": share_of([o.result is None for o in outcomes]),
    }
    items = [o.item for o in outcomes]
    known_tools = {name for i in items for name in (*i.request.toolbox.names, *i.query.plan.tools)}
    inventions = [o.inventions(known_tools) for o in outcomes]
    for name, kind in (("steps", STEP), ("absent", ABSENT), ("arguments", ARGUMENT)):
        figures[f"invented_{name}"] = share_of([kind in kinds for kinds in inventions], note)
    new_tool_verdicts = [o.verdict for o in outcomes if o.item.new_tools]
    figures["new_tool_tools"] = share_of([v.right_tools for v in new_tool_verdicts])
    figures["new_tool_arguments"] = share_of([v.right_arguments for v in new_tool_verdicts])
    plan_results = [o.result for o in outcomes if o.result is not None]
    # 0 is a missing time, not a time of 0 ms.
    times = [result.milliseconds for result in plan_results if result.milliseconds]
    figures |= {f"ms_p{q}": _summary(times, partial(np.percentile, q=q)) for q in (50, 95)}
    token_keys = {"input_tokens": "input", "output_tokens": "output", "model_steps": "model_steps"}
    for name, key in token_keys.items():
        figures[name] = _summary([r.tokens[key] for r in plan_results if key in r.tokens], np.mean)
    return figures


def _summary(values: Sequence[float], statistic: Callable[[Any], Any]) -> Figure:
    return Figure(float(statistic(values)), count=len(values)) if values else Figure(None)
