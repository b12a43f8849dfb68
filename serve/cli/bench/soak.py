"""`casewright bench soak`: kills, damaged files, full disks, many clients and hostile input."""

from __future__ import annotations

from typing import Annotated

import typer

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson

app = typer.Typer(add_completion=False)


@app.command("soak")
def bench_soak(
    minutes: Annotated[float, typer.Option(min=0.1, help="How long it may take, about.")] = 5.0,
    seed: Annotated[int, typer.Option(min=0, help="Of every draw.")] = 0,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="These kinds of trials alone; several times for several.", metavar="KIND"
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="The most trials of each kind.", metavar="N")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Kill, damage, fill up and overrun what runs, and count what is lost or answered wrongly.

    Nothing of yours is touched: all of it is done in a temporary folder. The exit code is 2 where
    something was lost or wrong. As root a small disk is mounted and filled.
    """
    from casewright.bench.soak.measure import KINDS, soak

    if unknown := [name for name in only or () if name not in KINDS]:
        raise InputError(
            f"There is no kind {unknown[0]!r} of trials. --only is {', '.join(KINDS)}."
        )
    report = soak(minutes, seed, only or (), trials)
    report.show(as_json=as_json, plot=None)
    if report.figures["lost"] or report.figures["wrong"]:
        typer.echo(
            "error: Something was lost or wrong; the notes say what, and its seed.", err=True
        )
        raise typer.Exit(2)
