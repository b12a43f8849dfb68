"""Evaluation of several planners on the same questions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casewright.errors import InputError
from casewright.finetune.evaluation.figures import (
    BY_CONSTRUCTION,
    Figure,
    class_rows,
    differences,
    planner_figures,
    share_of,
)
from casewright.finetune.evaluation.intervals import RESAMPLE_COUNT, Resamples
from casewright.finetune.evaluation.item import EvaluationItem
from casewright.finetune.evaluation.outcome import (
    PlanOutcome,
    ask_all,
    only_provided,
    outcome,
    with_a_tool_removed,
)
from casewright.planner import Planner

#: Maximum number of errors of a planner in ``Evaluation.errors``; the figures count all errors.
_MAX_ERRORS = 20


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of an evaluation.

    Attributes:
        outcomes: The outcomes by planner's label, in the order of the items.
        figures: The figures by planner's label, then by figure's name (a key of ``FIGURES``).
        rows: One row for each planner and class; see ``class_rows``.
        differences: One row for each planner and figure; see ``differences``.
        settings: The arguments of the evaluation, as values of JSON types.
    """

    outcomes: Mapping[str, Sequence[PlanOutcome]]
    figures: Mapping[str, Mapping[str, Figure]]
    rows: Sequence[Mapping[str, Any]]
    differences: Sequence[Mapping[str, Any]]
    settings: Mapping[str, Any]

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The first errors of each planner, with the planner's label and the item's id."""
        return [
            {"planner": planner, "item": failed.item.query.record.id, "error": failed.error}
            for planner, outcomes in self.outcomes.items()
            for failed in [o for o in outcomes if o.error][:_MAX_ERRORS]
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the evaluation as an object of JSON types."""
        return {
            "settings": dict(self.settings),
            "figures": {
                planner: {name: figure.to_json() for name, figure in figures.items()}
                for planner, figures in self.figures.items()
            },
            "rows": [dict(row) for row in self.rows],
            "differences": [dict(row) for row in self.differences],
            "errors": self.errors,
        }


def evaluate(
    items: Sequence[EvaluationItem],
    planners: Mapping[str, Planner],
    *,
    constrained: Collection[str] = (),
    removal: Mapping[str, Planner] | None = None,
    groups: Sequence[int] = (),
    seed: int = 0,
    resamples: int = RESAMPLE_COUNT,
) -> Evaluation:
    """Return the figures of every planner's plans for every question.

    Args:
        planners: Planners by their labels in tables; the first is compared with the others.
        constrained: Labels of planners that a grammar or a check limits to the toolbox's tools;
            figures that the limit determines get the note "by construction".
        removal: Planners without a limit, by label. They plan with one needed tool removed, for the
            figure ``only_provided``; other labels get "by construction". ``None`` omits the figure.
        groups: A group number for each item; the bootstrap gives equal weights within a group.
        seed: The seed of the bootstrap and of the choice of removed tools.
        resamples: Number of resamples of the bootstrap.

    Raises:
        InputError: There is no item or no planner, ``removal`` names an unknown planner, or
            ``groups`` has another length than ``items``.
    """
    if not items:
        raise InputError("There is nothing to evaluate on. Give at least one annotated query.")
    if not planners:
        raise InputError("There is nothing to evaluate. Give at least one planner.")
    if unknown := sorted(set(removal or ()) - set(planners)):
        raise InputError(f"removal names {unknown}, which are not among the planners.")
    if groups and len(groups) != len(items):
        raise InputError(f"There are {len(groups)} groups for {len(items)} items. Give one each.")
    bootstrap = Resamples(len(items), tuple(groups), seed, resamples)
    requests = [item.request for item in items]
    reduced_items = [] if removal is None else with_a_tool_removed(items, seed)
    outcomes: dict[str, list[PlanOutcome]] = {}
    figures: dict[str, dict[str, Figure]] = {}
    for label, planner in planners.items():
        answers = ask_all(planner, requests, f"Planner {label}")
        outcomes[label] = [*map(outcome, items, answers)]
        figures[label] = planner_figures(
            outcomes[label], bootstrap, constrained=label in constrained
        )
        if removal is not None and label in removal:
            reduced_requests = [item.request for item in reduced_items]
            answers = ask_all(removal[label], reduced_requests, f"Planner {label}, a tool removed")
            flags = [*map(only_provided, reduced_items, answers)]
            figures[label]["only_provided"] = share_of(flags)
        elif removal is not None:
            figures[label]["only_provided"] = Figure(None, note=BY_CONSTRUCTION)
    return Evaluation(
        outcomes,
        figures,
        [row for label in planners for row in class_rows(label, outcomes[label], bootstrap)],
        differences(outcomes, bootstrap),
        {
            "items": len(items),
            "planners": list(planners),
            "removal_items": None if removal is None else len(reduced_items),
            "groups": len(set(groups)) or None,
            "seed": seed,
            "resamples": resamples,
        },
    )
