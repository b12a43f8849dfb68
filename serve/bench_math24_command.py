"""`casewright bench math24`: MCBR-RAG's first application."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.serve.options import AsJson, Plot


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("math24")(bench_math24)


def bench_math24(
    data: Annotated[
        Path,
        typer.Option(
            help="The paper's puzzles and splits: the folder with cases_466.jsonl and "
            "test_splits_10x30.json.",
            metavar="DIR",
        ),
    ],
    chat: Annotated[
        str | None,
        typer.Option(help="Also ask a chat model, as provider:model.", metavar="NAME"),
    ] = None,
    runs: Annotated[
        int, typer.Option(min=1, max=10, help="The first so many of the ten published runs.")
    ] = 10,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Retrieve cases of Math-24 and answer by them, in the paper's protocol.

    Some ten minutes on two cores: each run trains its latents anew.
    """
    from casewright.bench.math24.measure import measure_math24

    measure_math24(data, chat, runs).show(as_json=as_json, plot=plot)
