"""Commands that measure and print a report."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from casewright.serve.cli.options import AsJson, Plot

if TYPE_CHECKING:
    from casewright.bench.report import Report


def measures(app: typer.Typer, name: str, *, plots: bool = True) -> Callable[..., Any]:
    """Return a decorator that makes a function which returns a report a command that prints it.

    Args:
        app: The group of the command.
        name: The command's.
        plots: Whether the command has ``--plot``; all have ``--json``.
    """

    def register(measure: Callable[..., Report]) -> Callable[..., Report]:
        # The type of a report is imported for type checkers only.
        hints = get_type_hints(measure, localns={"Report": None}, include_extras=True)
        given = signature(measure).parameters.values()
        parameters = [parameter.replace(annotation=hints[parameter.name]) for parameter in given]
        plot = Parameter("plot", Parameter.KEYWORD_ONLY, default=None, annotation=Plot)
        as_json = Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=AsJson)

        @wraps(measure)
        def command(*, plot: Path | None = None, as_json: bool = False, **given: Any) -> None:
            show(measure(**given), as_json=as_json, plot=plot)

        command.__signature__ = Signature(  # type: ignore[attr-defined]
            [*parameters, *([plot] if plots else []), as_json]
        )
        command.__annotations__ = {**hints, "plot": Plot, "as_json": AsJson, "return": None}
        app.command(name)(command)
        return measure

    return register


def show(report: Report, *, as_json: bool, plot: Path | None = None) -> None:
    """Print a report, and draw it where a file is given."""
    from casewright.serve.cli.measured import commit, machine, save_plot
    from casewright.serve.cli.output import print_json, print_table

    if plot is not None:
        save_plot(plot, report.draw)
    if as_json:
        whole = report.to_json()
        print_json({"bench": whole.pop("bench"), "machine": machine(), **whole})
        return
    for title, rows in report.tables():
        columns = list(rows[0]) if rows else []
        print_table(columns, [[row.get(column) for column in columns] for row in rows], title)
    print_table(["figure", "value"], [[n, float(v)] for n, v in report.figures.items()])
    for note in report.notes:
        print(note)
    if printed_by := commit():
        print(f"Printed by {printed_by}.")
