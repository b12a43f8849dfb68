"""Makes commands that print or plot a benchmark's report, with machine, versions and commit."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from typer import Typer

from casewright.serve.cli.options import AsJson, Plot, set_options
from casewright.serve.cli.output import print_json, print_rows, print_table

if TYPE_CHECKING:
    from casewright.bench.report import Report

#: Packages whose versions affect speed.
_PACKAGES = (
    *("langgraph", "qdrant-client", "onnxruntime", "numpy", "torch", "transformers"),
    *("tokenizers", "llguidance"),
)


def report_command(app: Typer, name: str, *, plots: bool = True) -> Callable[..., Any]:
    """Return a decorator that adds a command to ``app``; the command prints a function's report."""

    def register(measure: Callable[..., Report]) -> Callable[..., Report]:
        @wraps(measure)
        def command(*, plot: Path | None = None, as_json: bool = False, **options: Any) -> None:
            show(measure(**options), as_json=as_json, plot=plot)

        # ``Report`` is imported only for type checks, so it needs a value here.
        hints = get_type_hints(measure, localns={"Report": None}, include_extras=True)
        del hints["return"]
        defaults = {p.name: p.default for p in signature(measure).parameters.values()}
        output_options = {"plot": Plot, "as_json": AsJson} if plots else {"as_json": AsJson}
        set_options(command, {**hints, **output_options}, {**defaults, "as_json": False})
        app.command(name)(command)
        return measure

    return register


def show(report: Report, *, as_json: bool, plot: Path | None = None) -> None:
    """Print a report, and write its plot to the file ``plot`` unless this is ``None``."""
    if plot is not None:
        save_plot(plot, report.draw)
    if as_json:
        value = report.to_json()
        print_json({"bench": value.pop("bench"), "machine": machine(), **value})
        return
    for title, rows in report.tables():
        print_rows(rows, title)
    print_table(["figure", "value"], [[name, float(v)] for name, v in report.figures.items()])
    for note in report.notes:
        print(note)
    if version_text := commit():
        print(f"Printed by {version_text}.")


def machine() -> dict[str, Any]:
    """Return a description of this machine, the versions of packages, and the commit."""
    packages = [name for name in _PACKAGES if find_spec(name.replace("-", "_"))]
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
        "commit": commit(),
    }


def commit() -> str | None:
    """Return this checkout's commit, with a "+" if files changed; ``None`` without a checkout."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--exclude=*", "--dirty=+"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()


def save_plot(file: Path, draw: Callable[[Any], None] | None) -> None:
    """Write to a file the plot that ``draw`` draws onto matplotlib axes; ``None`` draws nothing."""
    from casewright.stores.plot_file import plot_file

    with plot_file(file, figsize=(8, 4.5)) as (_, axes):
        if draw is not None:
            draw(axes)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
