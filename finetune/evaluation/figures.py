"""The figures of one planner, each with its interval and with what it was measured on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from casewright.finetune.evaluation.intervals import (
    Resamples,
    f1_interval,
    f1_scores,
    macro,
    percentile_interval,
    wilson,
)
from casewright.finetune.evaluation.inventions import (
    ABSENT,
    ARGUMENT,
    STEP,
    inventions,
    known_tools,
)
from casewright.finetune.evaluation.outcome import Outcome
from casewright.finetune.evaluation.scores import score_classes

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
        made: dict[str, Any] = {
            "value": _rounded(self.value),
            "low": _rounded(self.low),
            "high": _rounded(self.high),
            "count": self.count,
        }
        return {**made, "note": self.note} if self.note else made


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
    made = {
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
        made[name] = share(
            [kind in one for one in invented], BY_CONSTRUCTION if constrained else ""
        )
    new = [o.verdict for o in outcomes if o.item.new_tools]
    made["new_tool_tools"] = share([v.tools for v in new])
    made["new_tool_arguments"] = share([v.arguments for v in new])
    if new_class:
        own = [v for v in verdicts if v.gold == new_class]
        made["new_class_tools"] = share([v.tools for v in own])
        made["new_class_arguments"] = share([v.arguments for v in own])
        score = next(score for score in classes if score.name == new_class)
        ends = f1_interval(new_class, gold, predicted)
        made["new_class_f1"] = Figure(score.f1, *ends, score.count)
    return {**made, **_costs(outcomes)}


def _costs(outcomes: Sequence[Outcome]) -> dict[str, Figure]:
    results = [o.result for o in outcomes if o.result is not None]
    # A planner that tells no time took some all the same.
    times = [result.milliseconds for result in results if result.milliseconds]
    made = {
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
        told = [result.tokens[key] for result in results if key in result.tokens]
        made[name] = Figure(float(np.mean(told)), count=len(told)) if told else Figure(None)
    return made
