"""How well planners plan for toolboxes that nothing was trained on."""

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
#: What is told, by the names of ``FIGURES`` in the evaluation, and the words of a table.
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
    """What is measured.

    Attributes:
        planners: Their names; the first is what others are compared with.
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


@dataclass(frozen=True, slots=True)
class UnseenReport(Report):
    """A report whose tables show a share with its interval in one cell."""

    def tables(self) -> Iterator[tuple[str, Sequence[str], Sequence[Mapping[str, Any]]]]:
        """Yield each table, its figures as text."""
        for title, _, lines in Report.tables(self):
            shown = [_shown(line) for line in lines]
            yield title, list(shown[0]), shown


def measure_unseen(trial: UnseenTrial, encoder: CachedEncoder | None = None) -> UnseenReport:
    """Plan for every message of every set by every planner, and by controls.

    Controls are the case planner with the same plan cases, the untuned base and the fallback plan.

    Args:
        trial: What is measured.
        encoder: Of plan cases; the packaged one by default.

    Raises:
        InputError: A planner or a set is not there, or too few messages are left to ask.
        DependencyError: A package that a planner needs is not installed.
    """
    names = names_with_controls(trial.planners, base=trial.base)
    sets = [corpus_set(trial.split, trial.cases, trial.seed)]
    sets += [] if trial.data is None else public_sets(trial.data)
    sets = [one.limited(trial.limit, trial.seed) for one in sets]
    # Before anything is asked: a model that cannot be loaded is told at once.
    makers = {name: maker(name, trial.settings) for name in names}
    with stores_of(sets, encoder or default_encoder()) as (stores, empty):
        planners: dict[str, Planner] = {
            name: ToolboxPlanner(name, make, stores, empty) for name, make in makers.items()
        }
        found = {
            one.name: evaluate(one.items, planners, groups=one.groups, seed=trial.seed)
            for one in sets
        }
    return _report(trial, sets, found)


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
                for one in sets
                for key, queries in one.known.items()
                if queries
            },
            stack.enter_context(plan_store([], uncached)),
        )


def _report(
    trial: UnseenTrial, sets: Sequence[UnseenSet], found: Mapping[str, Evaluation]
) -> UnseenReport:
    rows = [row for one in sets for row in _rows(one, found[one.name])]
    differences = [
        {"table": DIFFERENCES, "set": name, **row}
        for name, evaluation in found.items()
        for row in evaluation.differences
        if row["figure"] in TOLD
    ]
    titles = {one.name: f"{one.name}: {len(one.items)} messages" for one in sets}
    # The corpus alone: its messages are annotated by one rule.
    sure = {
        name: own
        for name, outcomes in found[sets[0].name].outcomes.items()
        if (own := confidences(outcomes)) is not None
    }
    rows += [
        {"table": SURE, **row} for name, own in sure.items() for row in confidence_rows(name, own)
    ]
    errors = [
        f"{e['planner']}, {e['item']}: {e['error']}" for f in found.values() for e in f.errors
    ]
    return UnseenReport(
        bench="unseen",
        settings={
            "planners": list(trial.planners),
            "split": trial.split,
            "cases": trial.cases,
            "limit": trial.limit,
            "seed": trial.seed,
            "toolboxes": len(sets[0].known),
            "refused": {one.name: dict(one.refused) for one in sets if one.refused},
        },
        figures={
            f"{words}, {one.name}, {planner}": figures[name].value or 0.0
            for one in sets
            for planner, figures in found[one.name].figures.items()
            for name, words in TOLD.items()
        }
        | {k: v for name, own in sure.items() for k, v in confidence_figures(name, own).items()},
        rows=[*rows, *differences],
        notes=[*NOTES, *([PUBLIC_NOTE] if trial.data is not None else []), *errors],
        draw=drawn(sure) if sure else None,
        titles={
            **titles,
            SURE: f"{sets[0].name}: whole plans among the surest",
            DIFFERENCES: f"difference from {trial.planners[0]}",
        },
    )


def _rows(one: UnseenSet, evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    names = list(dict.fromkeys(name for own in sorted(one.classes) for name in own))
    for planner, outcomes in evaluation.outcomes.items():
        for name in (ALL, *names):
            own = [
                outcome
                for outcome, classes in zip(outcomes, one.classes, strict=True)
                if name == ALL or name in classes
            ]
            yield {"table": one.name, "planner": planner, "class": name, **figures_of(own)}


def figures_of(
    outcomes: Sequence[Outcome], shared: Callable[[Sequence[bool]], Figure] = share
) -> dict[str, Any]:
    """Return a row of figures.

    Args:
        outcomes: Of one planner.
        shared: Returns a share with its interval; Wilson's by default.
    """
    times = [o.result.milliseconds for o in outcomes if o.result is not None]
    return {
        "messages": len(outcomes),
        **_interval("right tools", shared([o.verdict.tools for o in outcomes])),
        **_interval("whole plans", shared([o.graph_arguments for o in outcomes])),
        "invalid": sum(not o.own for o in outcomes),
        "ms": round(float(np.median(times)), 1) if times else None,
    }


def _interval(name: str, figure: Figure) -> dict[str, Any]:
    told = figure.to_json()
    return {name: told["value"], f"{name} low": told["low"], f"{name} high": told["high"]}


def _shown(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line with its intervals in the cells of what they are of."""
    shown = {name: value for name, value in line.items() if name != "table"}
    if "difference" in shown:
        low, high = shown.pop("low"), shown.pop("high")
        shown["difference"] = f"{shown['difference']:+.3f} [{low:+.3f}, {high:+.3f}]"
        return {**shown, "figure": TOLD[shown["figure"]]}
    for name in TOLD.values() if "whole plans low" in shown else ():
        low, high = shown.pop(f"{name} low"), shown.pop(f"{name} high")
        shown[name] = f"{shown[name]:.3f} [{low:.3f}, {high:.3f}]"
    return shown
