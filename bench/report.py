"""What every bench prints: figures, tables, the settings, and what they were measured on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from casewright.serve.cli.measured import commit, machine, save_plot
from casewright.serve.cli.output import print_json, print_table


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one bench.

    Attributes:
        bench: Its name on the command line.
        settings: What it was run with.
        figures: Named in plain words with their unit.
        rows: The table; or lines of several tables, told apart by their ``table``.
        notes: What a reader must know to read the figures.
        draw: Draws the plot onto matplotlib axes.
        titles: Of several tables the titles by what their rows' ``table`` is, in their order.
    """

    bench: str
    settings: Mapping[str, Any]
    figures: Mapping[str, float]
    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = ()
    draw: Callable[[Any], None] | None = field(default=None, repr=False)
    titles: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-plain form."""
        return {
            "bench": self.bench,
            "machine": machine(),
            "settings": dict(self.settings),
            "figures": dict(self.figures),
            "rows": [dict(row) for row in self.rows],
            "notes": list(self.notes),
        }

    def show(self, *, as_json: bool, plot: Path | None) -> None:
        """Print the report, and draw it where a file is given."""
        if plot is not None:
            save_plot(plot, self.draw)
        if as_json:
            print_json(self.to_json())
            return
        for title, columns, rows in self.tables():
            print_table(columns, [[row.get(c) for c in columns] for row in rows], title)
        print_table(["figure", "value"], [[n, float(v)] for n, v in self.figures.items()])
        for note in self.notes:
            print(note)
        if printed_by := commit():
            print(f"Printed by {printed_by}.")

    def tables(self) -> Iterator[tuple[str, Sequence[str], Sequence[Mapping[str, Any]]]]:
        """Yield title, columns and rows of each table that has rows; of a single one always."""
        if not self.titles:
            yield self.bench, list(self.rows[0]) if self.rows else [], self.rows
        for name, title in self.titles.items():
            if lines := [row for row in self.rows if row["table"] == name]:
                yield title, self.columns(lines), lines

    def columns(self, lines: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return which columns of one of several tables are shown: all but its own name."""
        return [column for column in lines[0] if column != "table"]
