"""The report of a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]


def without_table(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows without the cell ``table``, which names a row's table."""
    return [{name: cell for name, cell in row.items() if name != "table"} for row in rows]


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one benchmark."""

    bench: str  # the benchmark's name
    settings: Mapping[str, Any]
    figures: Mapping[str, float]  # the main results by name
    #: The rows of all tables. With several tables, the cell ``table`` of a row names its table.
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    #: Draws the plot on matplotlib axes.
    draw: Callable[[Any], None] | None = field(default=None, repr=False)
    #: The titles of the tables by name, in the order of printing; empty for a single table.
    titles: Mapping[str, str] = field(default_factory=dict)
    #: Formats the rows of one of several tables for printing.
    format_rows: Callable[[Sequence[Row]], Sequence[Row]] = field(default=without_table, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the report as a mapping that can be written as JSON."""
        names = ("bench", "settings", "figures", "rows", "notes")
        return {name: getattr(self, name) for name in names}

    def tables(self) -> Iterator[tuple[str, Sequence[Row]]]:
        """Yield title and rows of each table with rows; a single table has the benchmark's name."""
        if not self.titles:
            yield self.bench, self.rows
        for name, title in self.titles.items():
            if rows := [row for row in self.rows if row["table"] == name]:
                yield title, self.format_rows(rows)
