"""What commands that measure tell beside their figures: machine, versions, commit, a plot."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from casewright.stores.plot_file import plot_file

#: Packages whose versions decide how fast things run.
_PACKAGES = (
    *("langgraph", "qdrant-client", "onnxruntime", "numpy", "torch", "transformers"),
    *("tokenizers", "llguidance"),
)


def machine() -> dict[str, Any]:
    """Return what figures were measured on, and by which code."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": {
            name: version(name) for name in _PACKAGES if find_spec(name.replace("-", "_"))
        },
        "commit": commit(),
    }


def commit() -> str | None:
    """Return the commit of this checkout, with a + where files differ; ``None`` elsewhere."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--exclude=*", "--dirty=+"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def save_plot(file: Path, draw: Callable[[Any], None] | None) -> None:
    """Draw onto matplotlib axes, and write them to a file; see ``plot_file``."""
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
