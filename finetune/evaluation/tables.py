"""Tables of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casewright.finetune.evaluation.evaluate import Evaluation
from casewright.finetune.evaluation.figures import FIGURES, TIMES_AND_COUNTS, Figure

#: Number of classes in a table, the most frequent; the JSON form holds all.
_CLASSES = 20


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text; the first column names its rows."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables(evaluation: Evaluation) -> list[Table]:
    """Return figures side by side, classes, and differences where there are several planners."""
    results = [_overview(evaluation), *_classes(evaluation)]
    if evaluation.differences:
        results.append(_differences(evaluation))
    return results


def _overview(evaluation: Evaluation) -> Table:
    figures = evaluation.figures
    rows = []
    for name, title in FIGURES.items():
        row = [figures[planner].get(name, Figure(None)) for planner in figures]
        if all(figure.value is None and not figure.note for figure in row):
            continue
        counts = {figure.count for figure in row if figure.count}
        fewer = name not in TIMES_AND_COUNTS and counts - {evaluation.settings["items"]}
        suffix = f" (of {max(counts)})" if fewer else ""
        rows.append([title + suffix, *(_cell(name, figure) for figure in row)])
    count = evaluation.settings["items"]
    return Table(f"{count} question{'s' * (count > 1)}", ["figure", *figures], rows)


def _cell(name: str, figure: Figure) -> str:
    if figure.value is None:
        return figure.note or "–"
    if name in TIMES_AND_COUNTS:
        return f"{figure.value:.1f}"
    interval = "" if figure.low is None else f" [{figure.low:.3f}, {figure.high:.3f}]"
    return f"{figure.value:.3f}{interval}{f', {figure.note}' if figure.note else ''}"


def _classes(evaluation: Evaluation) -> list[Table]:
    planners = list(evaluation.figures)
    by_class = {(row["planner"], row["class"]): row for row in evaluation.rows}
    counts = {row["class"]: row["count"] for row in evaluation.rows if row["class"] != "all"}
    names = sorted(counts, key=lambda name: (-counts[name], name))
    shown = sorted(names[:_CLASSES])
    left_out = f"; the {_CLASSES} most frequent of {len(names)}" if len(names) > _CLASSES else ""
    results = []
    for figure, title in (("f1", "F1"), ("tools", "Tool sequence right")):
        rows = [
            [
                f"{name} ({counts[name]})",
                *(_class_cell(by_class[planner, name], figure) for planner in planners),
            ]
            for name in shown
        ]
        results.append(Table(f"{title} by class{left_out}", ["class", *planners], rows))
    return results


def _class_cell(row: Mapping[str, Any], figure: str) -> str:
    return f"{row[figure]:.3f} [{row[f'{figure}_low']:.3f}, {row[f'{figure}_high']:.3f}]"


def _differences(evaluation: Evaluation) -> Table:
    first, *others = evaluation.figures
    rows: dict[str, list[str]] = {}
    # By planner, in the order of the columns.
    for row in evaluation.differences:
        cells = rows.setdefault(row["figure"], [FIGURES[row["figure"]]])
        cells.append(f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]")
    return Table(f"Difference from {first}", ["figure", *others], [*rows.values()])


#: How to read the tables.
NOTES = (
    "Brackets are 95 % intervals: Wilson's for shares and for a class's F1; of the mean F1 and of "
    "differences the percentiles of a Bayesian bootstrap over questions, which have no width where "
    "every answer is right, or none. All planners are compared over the same resamples.",
    "A plan that the fallback gave, where the planner could not, counts like any other but where "
    "a line says that it counts as wrong.",
    "By construction: the grammar, or a check of every plan, leaves the planner no other tools, so "
    "the figure says nothing of it. Planners with a language model of this process are asked with "
    "the grammar off where a tool is removed.",
)
