"""`casewright finetune math24`: the two networks of the domain Math-24."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.serve.cli.options import AsJson

app = typer.Typer(add_completion=False)


@app.command("math24")
def finetune_math24(
    target: Annotated[
        Path,
        typer.Option("--output", help="The folder to write both networks to.", metavar="FOLDER"),
    ],
    steps: Annotated[
        int, typer.Option(min=1, help="Training steps of the card reader, 64 images each.")
    ] = 1600,
    seed: Annotated[int, typer.Option(min=0, help="Of both trainings.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train the reader of Math-24's cards and the latent that its cases are compared by.

    Some ten minutes on one core. The figures stand beside those of the networks that ship.
    """
    from casewright.domains.math24.training import TOLERANCE, shipped_figures, train_math24
    from casewright.errors import InputError
    from casewright.serve.cli.finetune.trained import show_trained

    if target.exists() and not target.is_dir():
        raise InputError(f"--output {target} is a file. Give a folder.")
    shipped = shipped_figures()
    figures = train_math24(target, seed=seed, steps=steps)
    show_trained(figures, shipped, TOLERANCE, target, as_json=as_json)
