"""``casewright bench reaper``: the paper's tables, row by row."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

from casewright.bench.reaper.asking import (
    CASES,
    COLUMNS,
    RANDOM,
    TRAINED,
    FirstTable,
    Line,
    RowLines,
)
from casewright.bench.reaper.rows import (
    FIRST,
    SECOND,
    STUDIES,
    THIRD,
    Material,
    ReaperTrial,
    Row,
    Training,
    ablation_rows,
    instruction_sources,
    mixture,
    open_material,
    trainings_of,
)
from casewright.bench.reaper.studies import held_out_queries, study_rows
from casewright.bench.reaper.workplace import Workplace, given_start
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.shipped import find_recipe
from casewright.stores.progress import note, told_progress

_TITLES = {FIRST: "Table 1", "2": "Table 2", "3": "Table 3", STUDIES: "Generalisation studies"}
#: Columns that are hidden if all lines of a table have the same value.
_SAME = ("questions", "class", "planner")
#: In a child process, the lock for opening the domain's stores.
_OPENING: AbstractContextManager[Any] = nullcontext()
_NOTES = (
    "tools: share of plans with the right tool sequence, with its 95 % interval (Wilson); "
    "arguments: and every argument right; arguments_paper: the same over plans with prod_search or "
    "shipment_status. A plan by a fallback, or one that is not valid, counts as wrong. "
    "only_provided: a needed tool was removed, the grammar off, and no other tool was named than "
    "those that are there.",
    "No question took part in training or in the plan cases. The case planner has the row's plan "
    "cases and no reader; the plan parser, by which it plans then, has learned from all queries.",
    "published: the figures of REAPER's own Tables 1 to 3 (Joshi et al. 2024), of a Mistral-7B on "
    "other data and 600 other questions; in brackets what it was trained on. Its only_provided is "
    "1 less the share of plans that call prod_qna, which was removed.",
)


@dataclass(frozen=True, slots=True)
class _Run:
    """A trial with everything that it opens; ``rows`` are those that need a training."""

    trial: ReaperTrial
    recipe: Recipe
    material: Material
    work: Workplace
    rows: tuple[Row, ...]

    def lines(self) -> RowLines:
        """Return the lines of rows, after making the model that rows start from."""
        data, trial = self.recipe.data, self.trial
        if trial.start is not None:
            start = given_start(trial.start, self.material.toolbox)
        else:
            start = self.work.start(_common(self.material, data, trial))
        return RowLines(self.material, self.work, start, data.tevo.shots, trial.seed)

    def finish(self, lines: RowLines, name: str) -> None:
        """Train and measure the rows of one training; their figures are cached."""
        for row in self.rows:
            if row.training is not None and row.training.name == name:
                lines.of(row)


def measure_reaper(trial: ReaperTrial) -> Report:
    """Train and measure the rows that are not cached, and return the report of all of them."""
    run = _open(trial)
    # First of all: a missing file must end the command before hours of training.
    first = FirstTable.of(trial, run.material, run.work) if FIRST in trial.tables else None
    lines: list[Line] = []
    if first is not None:
        note("Table 1: asking the planners on the frozen questions.")
        lines += first.lines()
    if names := [training.name for training in trainings_of(run.rows)]:
        measured = run.lines()
        with told_progress("Training and measuring", len(names), "trainings") as advance:
            if trial.jobs > 1:
                measure_beside(trial, names, finish, lambda name: advance(1))
            else:
                for name in names:
                    note(f"Training {name}.")
                    run.finish(measured, name)
                    advance(1)
        # In the order of the tables, from the cache.
        lines += [line for row in run.rows for line in measured.of(row)]
    return Report(
        bench="reaper",
        settings={
            "domain": run.material.domain.name,
            "tables": list(trial.tables),
            "recipe": run.recipe.model_dump(mode="json", exclude_none=True, exclude={"data"}),
            "steps": run.work.training.steps,
            "plan_cases_in_a_prompt": run.recipe.data.tevo.shots,
            "left_out_tool": trial.tool,
            "frozen_questions": len(run.material.frozen),
            "queries": len(run.material.queries),
            "instructions": trial.instructions is not None,
            "start": "another model" if trial.start is not None else run.recipe.model.base,
            "seed": trial.seed,
            **(first.settings if first is not None else {}),
        },
        figures=_figures(lines),
        rows=lines,
        notes=[*_NOTES, *_training_notes(trial, run.work.training.steps)],
        draw=lambda axes: draw_rows(axes, lines),
        titles=_TITLES,
        cells=_shown,
    )


def _open(trial: ReaperTrial) -> _Run:
    recipe = Recipe.read(find_recipe(trial.recipe))
    if recipe.data.toolbox is not None or recipe.data.queries is not None:
        raise InputError(
            f"{trial.recipe}: data.toolbox and data.queries have no frozen questions to measure "
            "by. Write data.domain alone."
        )
    with _OPENING:
        material = open_material(recipe.data.domain)
    work = Workplace(trial.folder, recipe, material.encoder, steps=trial.steps)
    rows: list[Row] = []
    if {SECOND, THIRD} & set(trial.tables):
        ablations = ablation_rows(material, recipe.data, trial.instructions)
        rows += [row for row in ablations if row.table in trial.tables]
    if STUDIES in trial.tables:
        rows += study_rows(material, recipe.data, trial)
    limit, seed = trial.limit, trial.seed
    short = tuple(replace(row, questions=row.questions.limited(limit, seed)) for row in rows)
    return _Run(trial, recipe, material, work, short)


def _common(material: Material, data: Any, trial: ReaperTrial) -> Training:
    """Return the set of a new base's tokenizer: without any query that a study asks."""
    toolbox = material.without(trial.tool)
    held_out = {id(query) for query in held_out_queries(material, trial)}
    queries = [
        query
        for query in material.queries
        if id(query) not in held_out and trial.tool not in query.record.tools_removed
    ]
    section = mixture(data, instruction_sources(trial.instructions))
    return Training("common", section, material.ingredients(queries, toolbox))


def measure_beside(
    trial: ReaperTrial,
    names: Sequence[str],
    finish: Callable[[ReaperTrial, str], None],
    finished: Callable[[str], None],
) -> None:
    """Measure the rows of every training by ``trial.jobs`` processes.

    ``finish`` measures the rows of one training; a process must be able to import it.

    Raises:
        InputError: A training failed; running ones end first.
    """
    context = get_context("spawn")
    threads = max(1, (os.cpu_count() or 1) // trial.jobs)
    with ProcessPoolExecutor(
        trial.jobs, context, initializer=_begin, initargs=(context.Lock(), threads)
    ) as pool:
        running = {pool.submit(finish, trial, name): name for name in names}
        try:
            for future in as_completed(running):
                future.result()
                finished(running[future])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin(lock: Any, threads: int) -> None:
    global _OPENING
    _OPENING = lock
    # Torch reads it once, when it is imported.
    os.environ["OMP_NUM_THREADS"] = str(threads)


def finish(trial: ReaperTrial, name: str) -> None:
    """Train and measure the rows of one training in this process; see ``measure_beside``."""
    run = _open(trial)
    run.finish(run.lines(), name)


def _shown(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a table's lines without empty columns, and without those of one value in `_SAME`."""
    values = {name: {line[name] for line in lines} for name in COLUMNS[1:]}
    columns = [
        name
        for name, group in values.items()
        if group != {None} and not (name in _SAME and len(group) == 1)
    ]
    return [{name: line[name] for name in columns} for line in lines]


def _figures(lines: Sequence[Line]) -> dict[str, float]:
    """Return the figures of each row's trained planner as served, and its margins.

    Margins are differences of tool accuracy to the case planner with the same plan cases, and to
    random weights under the same grammar.
    """
    figures: dict[str, float] = {}
    for row, name in _rows(lines):
        trained = _served(row, TRAINED)
        if trained is None or trained["tools"] is None:
            continue
        figures |= {f"tools_{name}": trained["tools"], f"arguments_{name}": trained["arguments"]}
        for word, planner in (("case_planner", CASES), ("random_weights", RANDOM)):
            if (other := _served(row, planner)) is not None:
                margin = round(trained["tools"] - other["tools"], 4)
                figures[f"tools_{name}_over_{word}"] = margin
    for line in lines:
        if line["table"] != FIRST:
            continue
        slug = _slug(line["row"])
        if line["class"] == "all" and line["tools"] is not None and _is_served(line):
            names = ("tools", "arguments", "arguments_paper", "ms_p50")
            figures |= {f"{name}_{slug}": line[name] for name in names if line[name] is not None}
        if line["only_provided"] is not None and line["plan cases"] == "on":
            figures[f"only_provided_{slug}"] = line["only_provided"]
    return figures


def _rows(lines: Sequence[Line]) -> Iterator[tuple[list[Line], str]]:
    """Yield the lines of each row of all tables but the first, with its name in figures."""
    grouped: dict[tuple[str, str, str], list[Line]] = {}
    for line in lines:
        if line["table"] != FIRST:
            key = (line["table"], line["row"], line["questions"])
            grouped.setdefault(key, []).append(line)
    for (table, row, questions), group in grouped.items():
        end = f"_{_slug(questions)}" if table == STUDIES else ""
        yield group, f"table_{table}_{_slug(row)}{end}"


def _served(lines: Sequence[Line], planner: str) -> Line | None:
    return next(
        (group for group in lines if group["planner"] == planner and _is_served(group)), None
    )


def _is_served(line: Line) -> bool:
    on = (None, "on")
    return line["grammar"] in on and line["plan cases"] in on


def _slug(text: str) -> str:
    return "_".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def _training_notes(trial: ReaperTrial, steps: int | None) -> Iterator[str]:
    if set(trial.tables) - {FIRST}:
        trained = f"{steps} steps" if steps else "the recipe's epochs"
        yield (
            f"Every row of Tables 2 and 3 and of the studies is a training of {trained} from the "
            "same base, which has seen no query and no tool of the domain: shorter than that of "
            "the shipped planner. examples and tokens are those of its training set."
        )


def draw_rows(axes: Any, lines: Sequence[Line]) -> None:
    """Draw the tool accuracy of every row, or of Table 1's planners, as bars beside baselines."""
    rows = [
        (served, group)
        for group, _ in _rows(lines)
        if (served := _served(group, TRAINED)) is not None and served["tools"] is not None
    ]
    label = TRAINED if rows else "planner"
    if not rows:
        alone = [line for line in lines if line["class"] == "all" and _is_served(line)]
        rows = [(line, []) for line in alone if line["tools"] is not None]
    axes.barh(range(len(rows)), [served["tools"] for served, _ in rows], 0.6, label=label)
    for planner, mark in ((CASES, "o"), (RANDOM, "x")):
        beside = [(_served(group, planner), height) for height, (_, group) in enumerate(rows)]
        points = [(line["tools"], height) for line, height in beside if line is not None]
        if points:
            axes.plot(*zip(*points, strict=True), mark, color="black", label=planner)
    names = [f"{served['row']} ({served['questions']})" for served, _ in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=7)
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel="share of right tool sequences", title="REAPER's tables, here")
    axes.legend(loc="lower right")
