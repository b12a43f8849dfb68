"""Tables of an evaluation's results, as texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from casewright.finetune.evaluation.evaluate import Evaluation
from casewright.finetune.evaluation.figures import FIGURES, TIMES_AND_COUNTS, Figure

#: Maximum number of classes in a table; the JSON form has all classes.
_MAX_CLASSES = 20


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts; the first column has the rows' names."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables(evaluation: Evaluation) -> list[Table]:
    """Return tables of figures and of classes, and of differences if there are several planners."""
    differences = [_differences(evaluation)] if evaluation.differences else []
    return [_overview(evaluation), *_classes(evaluation), *differences]


def _overview(evaluation: Evaluation) -> Table:
    rows = []
    item_count = evaluation.settings["items"]
    figures_by_planner = evaluation.figures
    for name, row_title in FIGURES.items():
        row = [figures.get(name, Figure(None)) for figures in figures_by_planner.values()]
        if all(figure.value is None and not figure.note for figure in row):
            continue
        counts = {figure.count for figure in row if figure.count}
        is_partial = name not in TIMES_AND_COUNTS and bool(counts - {item_count})
        suffix = f" (of {max(counts)})" if is_partial else ""
        rows.append([row_title + suffix, *(_cell(name, figure) for figure in row)])
    title = f"{item_count} question{'s' * (item_count > 1)}"
    return Table(title, ["figure", *figures_by_planner], rows)


def _cell(name: str, figure: Figure) -> str:
    if figure.value is None:
        return figure.note or "–"
    if name in TIMES_AND_COUNTS:
        return f"{figure.value:.1f}"
    interval = "" if figure.low is None else f" [{figure.low:.3f}, {figure.high:.3f}]"
    return f"{figure.value:.3f}{interval}{f', {figure.note}' if figure.note else ''}"


def _classes(evaluation: Evaluation) -> list[Table]:
    planners = list(evaluation.figures)
    row_of = {(row["planner"], row["class"]): row for row in evaluation.rows}
    counts = {row["class"]: row["count"] for row in evaluation.rows if row["class"] != "all"}
    names = sorted(counts, key=lambda name: (-counts[name], name))
    shown = sorted(names[:_MAX_CLASSES])
    is_cut = len(names) > _MAX_CLASSES
    suffix = f"; the {_MAX_CLASSES} most frequent of {len(names)}" if is_cut else ""

    def cell(planner: str, name: str, figure: str) -> str:
        row = row_of[planner, name]
        return f"{row[figure]:.3f} [{row[f'{figure}_low']:.3f}, {row[f'{figure}_high']:.3f}]"

    return [
        Table(
            f"{title} by class{suffix}",
            ["class", *planners],
            [[f"{name} ({counts[name]})", *(cell(p, name, f) for p in planners)] for name in shown],
        )
        for f, title in (("f1", "F1"), ("tools", "Tool sequence right"))
    ]


def _differences(evaluation: Evaluation) -> Table:
    first, *others = evaluation.figures
    rows: dict[str, list[str]] = {}
    # The rows of each figure are in the order of the planners, as are the columns.
    for row in evaluation.differences:
        cells = rows.setdefault(row["figure"], [FIGURES[row["figure"]]])
        cells.append(f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]")
    return Table(f"Difference from {first}", ["figure", *others], [*rows.values()])


#: Explanations of the tables.
NOTES = (
    "Brackets are 95 % intervals: Wilson's for shares and for a class's F1. For the mean F1 and "
    "differences, they are percentiles of a Bayesian bootstrap over questions. All planners have "
    "the same resamples. Bootstrap intervals have no width if all answers are right, or none is.",
    "A fallback's plan counts like any other, except where a line says that it counts as wrong.",
    "A figure is marked 'by construction' if the grammar, or a check of every plan, allows only "
    "the provided tools: the figure then does not depend on the planner. For the row in which a "
    "needed tool is removed, a local language model plans without the grammar.",
)
