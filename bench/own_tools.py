"""The accuracy of planners on a user's own tools, by the annotated messages that they know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from casewright.bench.own_tools_sets import own_folder
from casewright.bench.report import Report
from casewright.bench.unseen import TOLD, figures_of, stores_of, with_intervals
from casewright.bench.unseen_planners import FALLBACK, ToolboxPlanner, maker, names_with_controls
from casewright.bench.unseen_sets import UnseenSet, corpus_set
from casewright.errors import InputError
from casewright.finetune.corpus import Split, read_corpus
from casewright.finetune.evaluation import Figure, evaluate
from casewright.finetune.evaluation.intervals import Resamples, percentile_interval, shares
from casewright.finetune.evaluation.outcome import Outcome
from casewright.planner.named import ModelSettings
from casewright.stores import CachedEncoder, default_encoder
from casewright.stores.progress import told_progress

#: Annotated messages that planners know, where nobody says otherwise.
CASES = (0, 5, 20, 60)
NOTES = (
    "right tools: the plan's tool sequence is the gold one. whole plans: its graph is the gold "
    "plan's, by tools, references and every argument; an argument that the gold plan lacks is "
    "wrong, and so is the whole question in the place of a short literal. Means over the draws of "
    "cases. ms, cpu ms: medians, of the clock and of all cores.",
    "Brackets are 95 % intervals of a Bayesian bootstrap over the messages of a folder, over the "
    "toolboxes of the corpus. They have no width where every answer is right, or none.",
)


@dataclass(frozen=True, slots=True)
class OwnToolsTrial:
    """The options of the command.

    Attributes:
        planners: Their names.
        data: A folder with tools and messages; ``None`` measures on the corpus alone.
        cases: How many annotated messages planners know, in turn.
        seeds: Draws of these messages.
        split: Of the corpus, toolboxes to measure on, too; ``None`` for none.
        limit: Most messages that are asked of each.
        settings: Of planners with a language model.
    """

    planners: Sequence[str]
    data: Path | None = None
    cases: Sequence[int] = CASES
    seeds: int = 5
    split: Split | None = "measuring"
    limit: int | None = None
    settings: ModelSettings = field(default_factory=ModelSettings)


def measure_own_tools(trial: OwnToolsTrial, encoder: CachedEncoder | None = None) -> Report:
    """Plan for every message by every planner, with ever more cases drawn again and again.

    Controls are the plan parser and the fallback plan.

    Args:
        trial: The options.
        encoder: Of plan cases; the packaged one by default.

    Raises:
        InputError: A planner or a file is not there, or there is nothing to measure on.
        DependencyError: A package that a planner needs is not installed.
    """
    runs = _runs(trial)
    makers = {
        name: maker(name, trial.settings)
        for name in names_with_controls(trial.planners, base=False)
    }
    used = encoder or default_encoder()
    rows = []
    # The fallback plan knows no case.
    pairs = [
        (name, run)
        for name, run in product(makers, runs)
        if name != FALLBACK or run.cases == min(trial.cases)
    ]
    with told_progress("Planning", sum(len(run.sets) for _, run in pairs), "runs") as advance:
        for name, run in pairs:
            outcomes: list[Outcome] = []
            cpu: list[float] = []
            for own in run.sets:
                with stores_of([own], used) as (stores, empty):
                    planner = ToolboxPlanner(name, makers[name], stores, empty)
                    outcomes += evaluate(own.items, {name: planner}).outcomes[name]
                cpu += planner.cpu
                advance(1)
            groups = [group for own in run.sets for group in own.groups]
            figures = figures_of(outcomes, partial(_clustered, groups=groups))
            row = {"planner": name, "cases": run.cases, "draws": len(run.sets), **figures}
            row["cpu ms"] = round(float(np.median(cpu)), 1) if cpu else None
            rows.append({"table": run.table, **row})
    return _report(trial, rows)


@dataclass(frozen=True, slots=True)
class _Run:
    """The questions to a planner that knows so many cases: a set for each draw of them."""

    table: str
    cases: int
    sets: Sequence[UnseenSet]


def _runs(trial: OwnToolsTrial) -> list[_Run]:
    runs = []
    if trial.data is not None:
        folder = own_folder(trial.data)
        most = len(folder.learn)
        for cases in _fitting(trial, most):
            draws = 1 if cases in (0, most) else trial.seeds
            sets = [folder.known(cases, seed) for seed in range(draws)]
            runs.append(_run(trial, folder.name, cases, sets))
    if trial.split is not None:
        fitting = _fitting(trial, min(len(box.queries) for box in read_corpus(trial.split)) - 1)
        for cases in fitting:
            # The same messages are asked, however many of the others are known.
            sets = [
                replace(
                    corpus_set(trial.split, fitting[-1], seed),
                    known=corpus_set(trial.split, cases, seed).known,
                )
                for seed in range(trial.seeds)
            ]
            runs.append(_run(trial, trial.split, cases, sets))
    if not runs:
        raise InputError("There is nothing to measure on. Give --data DIR, or --corpus.")
    return runs


def _fitting(trial: OwnToolsTrial, most: int) -> list[int]:
    """Return the numbers of cases that exist: more would be the same under another name."""
    return [cases for cases in sorted(set(trial.cases)) if cases <= most]


def _run(trial: OwnToolsTrial, table: str, cases: int, sets: Sequence[UnseenSet]) -> _Run:
    return _Run(table, cases, [own.limited(trial.limit, 0) for own in sets])


def _clustered(values: Sequence[bool], groups: Sequence[int]) -> Figure:
    """Return a share with the interval of a bootstrap that weighs all answers of a group alike."""
    drawn = shares(values, Resamples(len(values), tuple(groups)))
    return Figure(sum(values) / len(values), *percentile_interval(drawn), len(values))


def _report(trial: OwnToolsTrial, rows: Sequence[dict[str, Any]]) -> Report:
    tables = list(dict.fromkeys(row["table"] for row in rows))
    return Report(
        bench="own-tools",
        settings={
            "planners": list(trial.planners),
            "data": trial.data and str(trial.data),
            "cases": list(trial.cases),
            "seeds": trial.seeds,
            "split": trial.split,
            "limit": trial.limit,
        },
        figures=dict(_figures(rows)),
        rows=rows,
        notes=NOTES,
        titles={name: f"{name}, by annotated messages known" for name in tables},
        cells=with_intervals,
    )


def _figures(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, float]]:
    for row in rows:
        for words in TOLD.values():
            end = f"{row['table']}, {row['planner']}, {row['cases']} cases"
            yield f"{words}, {end}", row[words]
