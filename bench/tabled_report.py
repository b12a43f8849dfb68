"""A report whose rows are lines of several tables, told apart by their ``table``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from casewright.bench.report import Report


@dataclass(frozen=True, slots=True)
class TabledReport(Report):
    """A report of several tables.

    Attributes:
        titles: The tables' titles by what their rows' ``table`` is, in their order.
    """

    titles: Mapping[str, str] = field(default_factory=dict)

    def tables(self) -> Iterator[tuple[str, Sequence[str], Sequence[Mapping[str, Any]]]]:
        """Yield each table that has rows."""
        for name, title in self.titles.items():
            if lines := [row for row in self.rows if row["table"] == name]:
                yield title, self.columns(lines), lines

    def columns(self, lines: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return which columns of a table's lines are shown: all but its own name."""
        return [column for column in lines[0] if column != "table"]
