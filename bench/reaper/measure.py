"""``casewright bench reaper``: the paper's tables, row by row."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from casewright.bench.reaper.ablations import Mixtures, ablation_rows, instruction_places
from casewright.bench.reaper.beside import measure_beside
from casewright.bench.reaper.first_table import FirstTable
from casewright.bench.reaper.lines import Line, RowLines
from casewright.bench.reaper.material import Material, open_material
from casewright.bench.reaper.report import ReaperReport, draw_rows, figures_of, notes_of
from casewright.bench.reaper.row import Row, Training, trainings_of
from casewright.bench.reaper.start import given_start
from casewright.bench.reaper.studies import held_out_queries, study_rows
from casewright.bench.reaper.trial import FIRST, SECOND, STUDIES, THIRD, ReaperTrial
from casewright.bench.reaper.workplace import Workplace
from casewright.errors import InputError
from casewright.finetune.examples.drills import DrillSettings
from casewright.finetune.recipe.data_section import DataSection
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.shipped import find_recipe
from casewright.stores.progress import note


@dataclass(frozen=True, slots=True)
class _Run:
    """A trial with all that it opens.

    Attributes:
        trial: What is asked for.
        recipe: Of its trainings.
        material: The domain.
        work: Its folder.
        rows: Those of its tables that need a training.
    """

    trial: ReaperTrial
    recipe: Recipe
    material: Material
    work: Workplace
    rows: tuple[Row, ...]

    def lines(self) -> RowLines:
        """Return what measures rows; what they start from is made first, if it is not there."""
        data, trial = _rows_own(self.recipe.data), self.trial
        if trial.start is not None:
            start = given_start(trial.start, self.material.toolbox)
        else:
            start = self.work.start(_common(self.material, data, trial))
        return RowLines(self.material, self.work, start, data.tevo.shots, trial.seed)


def measure_reaper(trial: ReaperTrial) -> ReaperReport:
    """Train and measure the rows that are not there yet, and return all of them.

    Raises:
        InputError: The recipe, a folder or a model cannot be used, or a training went astray.
        DependencyError: A package that training needs is not installed.
    """
    run = _open(trial, nullcontext())
    # What is missing is told before hours of training.
    first = FirstTable.of(trial, run.material, run.work) if FIRST in trial.tables else None
    found: list[Line] = []
    if first is not None:
        note("Table 1: asking the planners on the frozen questions.")
        found += first.lines()
    names = [training.name for training in trainings_of(run.rows)]
    if names:
        measured = run.lines()
        clock = _Clock(len(names), trial.jobs)
        if trial.jobs > 1:
            measure_beside(trial, names, finish, clock.done)
            for row in run.rows:
                found += measured.of(row)
        else:
            found += _one_by_one(run, measured, names, clock)
    return ReaperReport(
        bench="reaper",
        settings=_settings(run, first),
        figures=figures_of(found),
        rows=found,
        notes=notes_of(trial, run.work.training.steps),
        draw=lambda axes: draw_rows(axes, found),
    )


def finish(trial: ReaperTrial, name: str, opening: AbstractContextManager[Any]) -> float:
    """Train and measure the rows of one training; their figures are kept.

    Args:
        trial: The run.
        name: Of the training.
        opening: Is entered while the domain is opened.

    Returns:
        The seconds that it took.
    """
    begun = time.perf_counter()
    run = _open(trial, opening)
    measured = run.lines()
    for row in run.rows:
        if row.training is not None and row.training.name == name:
            measured.of(row)
    return time.perf_counter() - begun


def _one_by_one(run: _Run, measured: RowLines, names: Sequence[str], clock: _Clock) -> list[Line]:
    for name in names:
        begun = time.perf_counter()
        clock.begin(name)
        for row in run.rows:
            if row.training is not None and row.training.name == name:
                measured.of(row)
        clock.done(name, time.perf_counter() - begun)
    # In the order of the tables, from what was kept.
    return [line for row in run.rows for line in measured.of(row)]


def _open(trial: ReaperTrial, opening: AbstractContextManager[Any]) -> _Run:
    recipe = Recipe.read(find_recipe(trial.recipe))
    if recipe.data.toolbox is not None or recipe.data.queries is not None:
        raise InputError(
            f"{trial.recipe}: data.toolbox and data.queries have no frozen questions to measure "
            "by. Write data.domain alone."
        )
    with opening:
        material = open_material(recipe.data.domain)
    work = Workplace(trial.folder, recipe, material.encoder, steps=trial.steps)
    data = _rows_own(recipe.data)
    rows: list[Row] = []
    if {SECOND, THIRD} & set(trial.tables):
        made = ablation_rows(material, data, trial.instructions)
        rows += [row for row in made if row.table in trial.tables]
    if STUDIES in trial.tables:
        rows += study_rows(material, data, trial)
    short = tuple(
        replace(row, questions=row.questions.limited(trial.limit, trial.seed)) for row in rows
    )
    return _Run(trial, recipe, material, work, short)


def _rows_own(data: DataSection) -> DataSection:
    """Return a recipe's section without drills, which come once, before all rows."""
    return data.model_copy(update={"drills": DrillSettings()})


def _common(material: Material, data: Any, trial: ReaperTrial) -> Training:
    """Return what the base's tokenizer is trained on: nothing that any study asks by."""
    if trial.tool not in material.toolbox:
        raise InputError(
            f"There is no tool {trial.tool!r} to leave out. Tools are: "
            f"{', '.join(material.toolbox.names)}."
        )
    out = {id(query) for query in held_out_queries(material, trial)}
    kept = [
        query
        for query in material.queries
        if id(query) not in out and trial.tool not in query.record.tools_removed
    ]
    section = Mixtures(data, instruction_places(trial.instructions)).whole()
    toolbox = material.toolbox.without(trial.tool)
    return Training("common", section, material.ingredients(kept, toolbox))


def _settings(run: _Run, first: FirstTable | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "domain": run.material.domain.name,
        "tables": list(run.trial.tables),
        "recipe": run.recipe.model_dump(mode="json", exclude_none=True, exclude={"data"}),
        "steps": run.work.training.steps,
        "plan_cases_in_a_prompt": run.recipe.data.tevo.shots,
        "left_out_tool": run.trial.tool,
        "frozen_questions": len(run.material.frozen),
        "queries": len(run.material.queries),
        "instructions": run.trial.instructions is not None,
        "start": "another model" if run.trial.start is not None else run.recipe.model.base,
        "seed": run.trial.seed,
    }
    if first is not None:
        told["shipped"] = first.metrics
        told["shipped_plan_cases_in_a_prompt"] = first.examples
    return told


class _Clock:
    """Tells on stderr which training is at work, and how long all of them may take.

    Args:
        total: Of trainings.
        jobs: At once.
    """

    def __init__(self, total: int, jobs: int) -> None:
        self._total = total
        self._jobs = jobs
        self._taken: list[float] = []

    def begin(self, name: str) -> None:
        """Tell that a training begins."""
        note(f"Training {len(self._taken) + 1} of {self._total}: {name}.{self._left()}")

    def done(self, name: str, seconds: float) -> None:
        """Tell that one is done.

        Args:
            name: Which.
            seconds: What it took, its questions included.
        """
        self._taken.append(seconds)
        note(f"{name}: done in {_time(seconds)}.{self._left() if self._jobs > 1 else ''}")

    def _left(self) -> str:
        left = self._total - len(self._taken)
        # What was there already took no time, and says nothing of the others.
        worked = [seconds for seconds in self._taken if seconds > 60]
        if not worked or not left:
            return ""
        each = sum(worked) / len(worked)
        return f" Some {_time(each * left / self._jobs)} are left."


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
