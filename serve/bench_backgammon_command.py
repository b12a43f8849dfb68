"""`casewright bench backgammon`: MCBR-RAG's second application."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.serve.options import AsJson, Plot


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("backgammon")(bench_backgammon)


def bench_backgammon(
    data: Annotated[
        Path,
        typer.Option(
            help="The analysed games: the folder with decisions-dev.jsonl and "
            "wildbg_positions.jsonl.",
            metavar="DIR",
        ),
    ],
    chat: Annotated[
        str | None,
        typer.Option(help="Also ask a chat model, as provider:model.", metavar="NAME"),
    ] = None,
    answers: Annotated[
        int, typer.Option(min=1, help="Decisions that are answered with and without cases.")
    ] = 200,
    boards: Annotated[
        int, typer.Option(min=1, help="Boards of each renderer that are read.")
    ] = 500,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="A sentence-transformers model to compare answers by, beside the packaged one.",
            metavar="NAME",
        ),
    ] = None,
    choosing: Annotated[
        bool,
        typer.Option(
            "--choosing",
            help="Ask a quarter of the training games by the others: how the latent that ships was "
            "chosen.",
        ),
    ] = False,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Compare decisions by their encoding and by latents, read boards, and answer by cases.

    Some fifteen minutes on two cores: eight latents are trained, on games that are not asked.
    """
    from casewright.bench.backgammon.measure import measure_backgammon

    measure_backgammon(
        data, chat=chat, answers=answers, boards=boards, encoder=encoder, choosing=choosing
    ).show(as_json=as_json, plot=plot)
