"""An evaluation as a Markdown document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from casewright.finetune.evaluation.evaluate import Evaluation
from casewright.finetune.evaluation.tables import Table, tables

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


def to_markdown(
    evaluation: Evaluation,
    settings: Mapping[str, Any],
    notes: Sequence[str] = (),
    title: str = "Planners, evaluated",
) -> str:
    """Return the document: settings, tables, errors, notes.

    Args:
        evaluation: What was found.
        settings: How it was made, by name.
        notes: What must be known beside ``NOTES``.
        title: The heading.
    """
    parts = [f"# {title}", *(_section(table) for table in tables(evaluation))]
    if errors := evaluation.errors:
        table = Table(
            "Errors",
            ["planner", "item", "error"],
            [[str(row[name]) for name in ("planner", "item", "error")] for row in errors],
        )
        parts.append(_section(table))
    parts.append("\n".join(f"- {note}" for note in (*NOTES, *notes)))
    shown = [[name, str(value)] for name, value in settings.items() if value is not None]
    parts.append(_section(Table("Settings", ["setting", "value"], shown)))
    return "\n\n".join(parts) + "\n"


def _section(table: Table) -> str:
    lines = [_line(table.columns), _line(["---", *["---:"] * (len(table.columns) - 1)])]
    lines += [_line(row) for row in table.rows]
    return f"## {table.title}\n\n" + "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
