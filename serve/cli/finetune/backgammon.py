"""`casewright finetune backgammon`: the networks of the domain backgammon."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.serve.cli.options import AsJson

app = typer.Typer(add_completion=False)


@app.command("backgammon")
def finetune_backgammon(
    data: Annotated[
        Path,
        typer.Option(
            help="The analysed games: the folder with decisions-dev.jsonl and "
            "wildbg_positions.jsonl.",
            metavar="DIR",
        ),
    ],
    target: Annotated[
        Path,
        typer.Option("--output", help="The folder to write the networks to.", metavar="FOLDER"),
    ],
    seed: Annotated[int, typer.Option(min=0, help="Of all trainings.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train the readers of boards and the latent that decisions are compared by.

    Some thirty-five minutes on one core. The figures stand beside those of the networks that ship.
    """
    from casewright.domains.backgammon.latent import shipped_figures
    from casewright.domains.backgammon.training import TOLERANCE, train_backgammon
    from casewright.errors import InputError
    from casewright.serve.cli.finetune.trained import show_trained

    if target.exists() and not target.is_dir():
        raise InputError(f"--output {target} is a file. Give a folder.")
    figures = train_backgammon(target, data, seed=seed)
    show_trained(figures, shipped_figures(), TOLERANCE, target, as_json=as_json)
