"""The accuracy of planners on toolboxes that nothing was trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from casewright.bench.confidence import (
    confidence_figures,
    confidence_rows,
    confidences,
    drawn,
)
from casewright.bench.report import Report
from casewright.bench.unseen_planners import ToolboxPlanner, maker, names_with_controls
from casewright.bench.unseen_sets import UnseenSet, corpus_set, public_sets
from casewright.finetune.corpus import Split
from casewright.finetune.evaluation import Evaluation, Figure, evaluate
from casewright.finetune.evaluation.figures import share
from casewright.finetune.evaluation.outcome import Outcome
from casewright.planner import plan_store
from casewright.planner.named import ModelSettings
from casewright.planner.request import Planner
from casewright.stores import CachedEncoder, CaseStore, default_encoder
from casewright.stores.encoders.cache import UncachedQuestions

ALL, DIFFERENCES, SURE = "all", "differences", "confidence"
#: Shares by the names of ``FIGURES`` in the evaluation, and their words in a table.
TOLD = {"tools": "right tools", "graph_arguments": "whole plans"}
NOTES = (
    "right tools: the plan's tool sequence is the gold one. whole plans: its graph is the gold "
    "plan's, by tools, references and every argument; an argument that the gold plan lacks is "
    "wrong. invalid: the planner gave no valid plan of its own; what stood in counts like any "
    "other. ms: median; of plans that are decoded together, each one's share.",
    "Brackets are 95 % intervals: Wilson's of shares, over messages; of differences a paired "
    "Bayesian bootstrap's, over toolboxes. An open page's messages are also in their own class.",
)
PUBLIC_NOTE = (
    "Public sets are planned for without plan cases. BFCL allows several values for some "
    "arguments, of which one is taken for gold: its whole plans are counted too low."
)


@dataclass(frozen=True, slots=True)
class UnseenTrial:
    """The options of the command.

    Attributes:
        planners: Their names; the others are compared with the first.
        split: Of the corpus: ``measuring``, or ``validation`` to tune by.
        cases: Plan cases of each toolbox that planners may know.
        limit: Most messages of each set.
        data: A folder with public sets to measure on, too.
        base: Whether the untuned base is a control.
        settings: Of planners with a language model.
        seed: Of every draw.
    """

    planners: Sequence[str]
    split: Split = "measuring"
    cases: int = 0
    limit: int | None = None
    data: Path | None = None
    base: bool = True
    settings: ModelSettings = field(default_factory=ModelSettings)
    seed: int = 0


def measure_unseen(trial: UnseenTrial, encoder: CachedEncoder | None = None) -> Report:
    """Plan for every message of every set by every planner, and by controls.

    Controls are the plan parser with the same plan cases, the untuned base and the fallback plan.

    Args:
        trial: The options.
        encoder: Of plan cases; the packaged one by default.

    Raises:
        InputError: A planner or a set is not there, or too few messages are left to ask.
        DependencyError: A package that a planner needs is not installed.
    """
    names = names_with_controls(trial.planners, base=trial.base)
    sets = [corpus_set(trial.split, trial.cases, trial.seed)]
    sets += [] if trial.data is None else public_sets(trial.data)
    sets = [own.limited(trial.limit, trial.seed) for own in sets]
    # First of all: a model that cannot be loaded is an error at once.
    makers = {name: maker(name, trial.settings) for name in names}
    with stores_of(sets, encoder or default_encoder()) as (stores, empty):
        planners: dict[str, Planner] = {
            name: ToolboxPlanner(name, make, stores, empty) for name, make in makers.items()
        }
        evaluations = {
            own.name: evaluate(own.items, planners, groups=own.groups, seed=trial.seed)
            for own in sets
        }
    return _report(trial, sets, evaluations)


@contextmanager
def stores_of(
    sets: Sequence[UnseenSet], encoder: CachedEncoder
) -> Iterator[tuple[dict[str, CaseStore], CaseStore]]:
    """Open the stores of plan cases by toolbox, and one that is empty."""
    uncached = UncachedQuestions(encoder)
    with ExitStack() as stack:
        yield (
            {
                key: stack.enter_context(plan_store(queries, uncached))
                for own in sets
                for key, queries in own.known.items()
                if queries
            },
            stack.enter_context(plan_store([], uncached)),
        )


def _report(
    trial: UnseenTrial, sets: Sequence[UnseenSet], evaluations: Mapping[str, Evaluation]
) -> Report:
    # The corpus alone: its messages are annotated by one rule.
    outcomes = evaluations[sets[0].name].outcomes
    sure = {name: c for name, own in outcomes.items() if (c := confidences(own)) is not None}
    rows = [row for own in sets for row in _rows(own, evaluations[own.name])]
    rows += [
        {"table": SURE, **row} for name, own in sure.items() for row in confidence_rows(name, own)
    ]
    rows += [
        {"table": DIFFERENCES, "set": name, **row}
        for name, evaluation in evaluations.items()
        for row in evaluation.differences
        if row["figure"] in TOLD
    ]
    figures = {
        f"{words}, {own.name}, {planner}": shares[name].value or 0.0
        for own in sets
        for planner, shares in evaluations[own.name].figures.items()
        for name, words in TOLD.items()
    }
    for name, own in sure.items():
        figures |= confidence_figures(name, own)
    errors = [error for evaluation in evaluations.values() for error in evaluation.errors]
    return Report(
        bench="unseen",
        settings={
            "planners": list(trial.planners),
            "split": trial.split,
            "cases": trial.cases,
            "limit": trial.limit,
            "seed": trial.seed,
            "toolboxes": len(sets[0].known),
            "refused": {own.name: dict(own.refused) for own in sets if own.refused},
        },
        figures=figures,
        rows=rows,
        notes=[
            *NOTES,
            *([PUBLIC_NOTE] if trial.data is not None else []),
            *(f"{e['planner']}, {e['item']}: {e['error']}" for e in errors),
        ],
        draw=drawn(sure) if sure else None,
        titles={
            **{own.name: f"{own.name}: {len(own.items)} messages" for own in sets},
            SURE: f"{sets[0].name}: whole plans among the surest",
            DIFFERENCES: f"difference from {trial.planners[0]}",
        },
        cells=with_intervals,
    )


def _rows(data: UnseenSet, evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    names = list(dict.fromkeys(name for own in sorted(data.classes) for name in own))
    for planner, outcomes in evaluation.outcomes.items():
        for name in (ALL, *names):
            own = [
                outcome
                for outcome, classes in zip(outcomes, data.classes, strict=True)
                if name == ALL or name in classes
            ]
            yield {"table": data.name, "planner": planner, "class": name, **figures_of(own)}


def figures_of(
    outcomes: Sequence[Outcome], shared: Callable[[Sequence[bool]], Figure] = share
) -> dict[str, Any]:
    """Return a row of figures.

    Args:
        outcomes: Of one planner.
        shared: Returns a share with its interval; Wilson's by default.
    """
    times = [o.result.milliseconds for o in outcomes if o.result is not None]
    row: dict[str, Any] = {"messages": len(outcomes)}
    for name, right in (
        ("right tools", [o.verdict.tools for o in outcomes]),
        ("whole plans", [o.graph_arguments for o in outcomes]),
    ):
        figure = shared(right).to_json()
        row |= {name: figure["value"], f"{name} low": figure["low"], f"{name} high": figure["high"]}
    invalid = sum(not o.own for o in outcomes)
    return {**row, "invalid": invalid, "ms": round(float(np.median(times)), 1) if times else None}


def with_intervals(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a table's lines with the intervals in the cells of their shares and differences."""
    return [_with_interval(line) for line in lines]


def _with_interval(line: Mapping[str, Any]) -> dict[str, Any]:
    cells = {name: value for name, value in line.items() if name != "table"}
    if "difference" in cells:
        low, high = cells.pop("low"), cells.pop("high")
        cells["difference"] = f"{cells['difference']:+.3f} [{low:+.3f}, {high:+.3f}]"
        return {**cells, "figure": TOLD[cells["figure"]]}
    for name in TOLD.values() if "whole plans low" in cells else ():
        low, high = cells.pop(f"{name} low"), cells.pop(f"{name} high")
        cells[name] = f"{cells[name]:.3f} [{low:.3f}, {high:.3f}]"
    return cells
