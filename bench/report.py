"""What every bench prints: figures, rows, the machine, the settings."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from casewright.errors import DependencyError, InputError

#: Packages whose versions decide how fast things run.
_MEASURED_WITH = (
    "langgraph",
    "qdrant-client",
    "onnxruntime",
    "numpy",
    "torch",
    "transformers",
    "tokenizers",
    "llguidance",
)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one bench.

    Attributes:
        bench: Its name on the command line.
        settings: What it was run with.
        figures: Named in plain words with their unit.
        rows: The table.
        notes: What a reader must know to read the figures.
        draw: Draws the plot onto matplotlib axes.
    """

    bench: str
    settings: Mapping[str, Any]
    figures: Mapping[str, float]
    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = ()
    draw: Callable[[Any], None] | None = field(default=None, repr=False)

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
        from casewright.serve.output import print_json, print_table

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

    def tables(self) -> Iterator[tuple[str, Sequence[str], Sequence[Mapping[str, Any]]]]:
        """Yield each table's title, columns and rows."""
        yield self.bench, list(self.rows[0]) if self.rows else [], self.rows


def save_plot(file: Path, draw: Callable[[Any], None] | None) -> None:
    """Draw onto matplotlib axes, and write them to a file.

    Raises:
        DependencyError: matplotlib is not installed.
        InputError: The file cannot be written.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise DependencyError(
            "A plot needs matplotlib. Run: pip install 'casewright[plot]'"
        ) from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    if draw is not None:
        draw(axes)
    try:
        figure.savefig(file, dpi=150)
    except (OSError, ValueError) as error:
        raise InputError(f"The plot cannot be written to {file}: {error}.") from error
    finally:
        pyplot.close(figure)


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _MEASURED_WITH},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
