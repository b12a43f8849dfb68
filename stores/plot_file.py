"""Writes plots to files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from casewright.errors import DependencyError, InputError


@contextmanager
def plot_file(file: Path, **settings: Any) -> Iterator[tuple[Any, Any]]:
    """Yield a matplotlib figure and its axes, and write the figure to a file at the end.

    The file's ending is its format; ``settings`` are arguments of ``pyplot.subplots``. Raise
    ``DependencyError`` without matplotlib, and ``InputError`` if the file cannot be written.
    """
    try:
        import matplotlib
    except ImportError as error:
        advice = "Run: pip install 'casewright[plot]'"
        raise DependencyError(f"A plot needs matplotlib. {advice}") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(layout="constrained", **settings)
    try:
        yield figure, axes
        try:
            figure.savefig(file, dpi=150)
        except (OSError, ValueError) as error:
            raise InputError(f"The plot cannot be written to {file}: {error}.") from error
    finally:
        pyplot.close(figure)
