"""The result of a bench: figures, tables, settings, notes, a plot; and papers' figures."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


def _without_table(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [{name: cell for name, cell in row.items() if name != "table"} for row in rows]


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one bench.

    Attributes:
        rows: The table; or lines of several tables, told apart by their ``table``.
        draw: Draws the plot onto matplotlib axes.
        titles: Of several tables the titles by their rows' ``table``, in their order.
        cells: Returns the rows of one table as they are shown.
    """

    bench: str
    settings: Mapping[str, Any]
    figures: Mapping[str, float]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    draw: Callable[[Any], None] | None = field(default=None, repr=False)
    titles: Mapping[str, str] = field(default_factory=dict)
    cells: Callable[[Sequence[Row]], Sequence[Row]] = field(default=_without_table, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-plain form."""
        return {
            "bench": self.bench,
            "settings": dict(self.settings),
            "figures": dict(self.figures),
            "rows": [dict(row) for row in self.rows],
            "notes": list(self.notes),
        }

    def tables(self) -> Iterator[tuple[str, Sequence[Row]]]:
        """Yield title and rows of each table that has rows; of a single table always."""
        if not self.titles:
            yield self.bench, self.rows
        for name, title in self.titles.items():
            if rows := [row for row in self.rows if row["table"] == name]:
                yield title, self.cells(rows)


@cache
def published(paper: str) -> dict[str, Any]:
    """Return the tables that a paper printed, by the paper's name in ``published.toml``."""
    text = Path(__file__).with_name("published.toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text)[paper])
