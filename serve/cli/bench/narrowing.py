"""`casewright bench narrowing`: what is lost where a large toolbox is narrowed before planning."""

from __future__ import annotations

from typing import Annotated

import typer

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson

app = typer.Typer(add_completion=False)


@app.command("narrowing")
def bench_narrowing(
    joins: Annotated[
        str,
        typer.Option(help="How many toolboxes are joined, in turn.", metavar="N,N,…"),
    ] = "12,32,64,250",
    planner: Annotated[
        str, typer.Option(help="What plans with them: as for bench unseen.", metavar="NAME")
    ] = "parser",
    split: Annotated[
        str,
        typer.Option(
            help="Whose messages are asked: measuring, or validation to tune by.", metavar="NAME"
        ),
    ] = "validation",
    cases: Annotated[
        int, typer.Option(min=0, help="Annotated messages of each of these that are known.")
    ] = 0,
    messages: Annotated[
        int | None,
        typer.Option(min=1, help="Messages of each toolbox that are planned for.", metavar="N"),
    ] = None,
    first: Annotated[
        int,
        typer.Option(
            min=0,
            help="Also time the first plan with so many tools, narrowed and not.",
            metavar="N",
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Of every draw.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Join toolboxes of the corpus to one, and plan with the 64 tools that are kept of it."""
    from casewright.bench.narrowing import measure_narrowing

    if split not in ("measuring", "validation"):
        raise InputError(f"There is no split {split!r}. --split is measuring or validation.")
    numbers = joins.split(",")
    if not all(number.strip().isdigit() and int(number) > 0 for number in numbers):
        raise InputError(f"--joins {joins!r} is no list of numbers. Give one such as 12,32.")
    report = measure_narrowing(
        [int(number) for number in numbers],
        planner=planner,
        split="measuring" if split == "measuring" else "validation",
        cases=cases,
        messages=messages,
        first=first,
        seed=seed,
    )
    report.show(as_json=as_json, plot=None)
