"""Writes plots to files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from casewright.errors import DependencyError, InputError


@contextmanager
def plot_file(file: Path, **settings: Any) -> Iterator[tuple[Any, Any]]:
    """Yield a matplotlib figure and its axes; write the figure to a file when the block ends.

    The end of the file's name sets the format; ``settings`` are arguments of ``pyplot.subplots``.
    Raise ``DependencyError`` if there is no matplotlib, ``InputError`` if the file is not writable.
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
