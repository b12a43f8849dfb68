"""A report whose rows are lines of several tables, told apart by their ``table``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from casewright.bench.report import Report, save_plot


@dataclass(frozen=True, slots=True)
class TabledReport(Report):
    """A report of several tables.

    Attributes:
        titles: The tables' titles by what their rows' ``table`` is, in their order.
    """

    titles: Mapping[str, str] = field(default_factory=dict)

    def show(self, *, as_json: bool, plot: Path | None) -> None:
        """Print the tables one by one, and draw the picture where a file is given."""
        from casewright.serve.output import print_json, print_table

        if plot is not None:
            save_plot(plot, self.draw)
        if as_json:
            print_json(self.to_json())
            return
        for name, title in self.titles.items():
            lines = [dict(row) for row in self.rows if row["table"] == name]
            if lines:
                columns = self.columns(lines)
                print_table(columns, [[line[c] for c in columns] for line in lines], title)
        print_table(["figure", "value"], [[n, float(v)] for n, v in self.figures.items()])
        for told in self.notes:
            print(told)

    def columns(self, lines: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return which columns of a table's lines are shown: all but its own name."""
        return [column for column in lines[0] if column != "table"]
