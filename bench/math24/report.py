"""The report of two tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from casewright.bench.report import Report, save_plot

_TITLES = {"1": "Table 1: retrieval", "2": "Table 2: answers"}


@dataclass(frozen=True, slots=True)
class Math24Report(Report):
    """A report whose rows are lines of two tables."""

    def show(self, *, as_json: bool, plot: Path | None) -> None:
        """Print the tables one by one, and draw the picture where a file is given."""
        from casewright.serve.output import print_json, print_table

        if plot is not None:
            save_plot(plot, self.draw)
        if as_json:
            print_json(self.to_json())
            return
        for name, title in _TITLES.items():
            lines = [dict(row) for row in self.rows if row["table"] == name]
            if lines:
                columns = [column for column in lines[0] if column != "table"]
                print_table(columns, [[line[c] for c in columns] for line in lines], title)
        print_table(["figure", "value"], [[n, float(v)] for n, v in self.figures.items()])
        for told in self.notes:
            print(told)
