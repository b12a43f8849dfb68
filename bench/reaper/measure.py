"""``casewright bench reaper``: the paper's tables, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
    THIRD,
    Material,
    ReaperTrial,
    Row,
    ablation_rows,
    open_material,
    trainings_of,
)
from casewright.bench.reaper.workplace import Workplace
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.shipped import find_recipe
from casewright.stores.progress import note, told_progress

_TITLES = {FIRST: "Table 1", SECOND: "Table 2", THIRD: "Table 3"}
#: Columns that are hidden if all lines of a table have the same value.
_SAME = ("questions", "class", "planner")
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


def measure_reaper(trial: ReaperTrial) -> Report:
    """Train and measure the rows that are not cached, and return the report of all of them."""
    recipe = Recipe.read(find_recipe(trial.recipe))
    if recipe.data.toolbox is not None or recipe.data.queries is not None:
        raise InputError(
            f"{trial.recipe}: data.toolbox and data.queries have no frozen questions to measure "
            "by. Write data.domain alone."
        )
    material = open_material(recipe.data.domain)
    work = Workplace(trial.folder, recipe, material.encoder, steps=trial.steps)
    rows = _trained_rows(trial, recipe, material)
    # First of all: a missing file must end the command before hours of training.
    first = FirstTable.of(trial, material, work) if FIRST in trial.tables else None
    lines: list[Line] = []
    if first is not None:
        note("Table 1: asking the planners on the frozen questions.")
        lines += first.lines()
    if names := [training.name for training in trainings_of(rows)]:
        measured = RowLines(material, work, recipe.model, recipe.data.tevo.shots, trial.seed)
        with told_progress("Training and measuring", len(names), "trainings") as advance:
            for name in names:
                note(f"Training {name}.")
                for row in rows:
                    if row.training is not None and row.training.name == name:
                        measured.of(row)
                advance(1)
        # In the order of the tables, from the cache.
        lines += [line for row in rows for line in measured.of(row)]
    return Report(
        bench="reaper",
        settings={
            "domain": material.domain.name,
            "tables": list(trial.tables),
            "recipe": recipe.model_dump(mode="json", exclude_none=True, exclude={"data"}),
            "steps": work.training.steps,
            "plan_cases_in_a_prompt": recipe.data.tevo.shots,
            "frozen_questions": len(material.frozen),
            "queries": len(material.queries),
            "instructions": trial.instructions is not None,
            "start": recipe.model.base,
            "seed": trial.seed,
            **(first.settings if first is not None else {}),
        },
        figures=_figures(lines),
        rows=lines,
        notes=[*_NOTES, *_training_notes(trial, work.training.steps)],
        draw=lambda axes: draw_rows(axes, lines),
        titles=_TITLES,
        cells=_shown,
    )


def _trained_rows(trial: ReaperTrial, recipe: Recipe, material: Material) -> list[Row]:
    """Return the rows that need a training."""
    if not {SECOND, THIRD} & set(trial.tables):
        return []
    return [
        replace(row, questions=row.questions.limited(trial.limit, trial.seed))
        for row in ablation_rows(material, recipe.data, trial.instructions)
        if row.table in trial.tables
    ]


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
    grouped: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if line["table"] != FIRST:
            grouped.setdefault((line["table"], line["row"]), []).append(line)
    for (table, row), group in grouped.items():
        yield group, f"table_{table}_{_slug(row)}"


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
            f"Every row of Tables 2 and 3 is a training of {trained} from the same base, which has "
            "seen no query and no tool of the domain: shorter than that of the shipped planner. "
            "examples and tokens are those of its training set."
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
