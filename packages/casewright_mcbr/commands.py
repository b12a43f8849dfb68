"""Figures of a training beside those of what ships."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer


def show_trained(
    figures: Mapping[str, float],
    shipped: Mapping[str, float],
    tolerance: float,
    target: Path,
    *,
    as_json: bool,
) -> None:
    """Print both, and whether they agree.

    Args:
        figures: Of the training.
        shipped: Of the training of what ships.
        tolerance: How far two may be apart.
        target: Where the training wrote to.
        as_json: Whether JSON is printed.
    """
    from casewright.serve.cli.output import print_json, print_table

    within = all(abs(figures[name] - shipped[name]) <= tolerance for name in shipped)
    if as_json:
        print_json({"figures": dict(figures), "shipped": dict(shipped), "within_tolerance": within})
        return
    rows = [[name, value, shipped.get(name)] for name, value in figures.items()]
    print_table(["figure", "trained now", "as shipped"], rows, str(target))
    verdict = "All" if within else "Not all"
    typer.echo(f"{verdict} are within {tolerance} of those that ship.")
