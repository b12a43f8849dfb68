"""Options and output that the commands of Math-24 and backgammon share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from casewright.errors import InputError

ChatModel = Annotated[
    str | None,
    typer.Option(
        "--chat", help="Also ask a chat model: provider:model, or local:smollm2.", metavar="NAME"
    ),
]
OutputFolder = Annotated[
    Path, typer.Option("--output", help="The folder to write the networks to.", metavar="FOLDER")
]
#: Allowed difference from the shipped figures, since machines round sums differently.
TOLERANCE = 0.02


def check_folder(target: Path) -> None:
    """Raise ``InputError`` if the output folder is a file."""
    if target.exists() and not target.is_dir():
        raise InputError(f"--output {target} is a file. Give a folder.")


def print_training_figures(
    figures: Mapping[str, float], shipped: Mapping[str, float], target: Path, *, as_json: bool
) -> None:
    """Print the new and the shipped networks' figures, and if the two agree within ``TOLERANCE``.

    ``target`` is the folder of the new networks.
    """
    from casewright.serve.cli.output import print_json, print_table

    are_close = all(abs(figures[name] - shipped[name]) <= TOLERANCE for name in shipped)
    if as_json:
        print_json(
            {"figures": dict(figures), "shipped": dict(shipped), "within_tolerance": are_close}
        )
        return
    rows = [[name, value, shipped.get(name)] for name, value in figures.items()]
    print_table(["figure", "trained now", "as shipped"], rows, str(target))
    verdict = "All figures differ by at most" if are_close else "Some figures differ by more than"
    typer.echo(f"{verdict} {TOLERANCE} from the shipped figures.")
