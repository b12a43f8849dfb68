"""`casewright finetune ship`: the two trainings of the planner that ships, as one folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.serve.options import AsJson


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ship")(finetune_ship)


def finetune_ship(
    base: Annotated[
        Path,
        typer.Option(help="The finished training of all weights.", metavar="FOLDER"),
    ],
    adapter: Annotated[
        Path,
        typer.Option(help="The finished training of an adapter on it.", metavar="FOLDER"),
    ],
    target: Annotated[
        Path,
        typer.Option(
            "--output",
            help="The folder to write; planner/mistral for the package.",
            metavar="FOLDER",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Assemble the language model that ships with Casewright; for its maintainers.

    Merges the adapter, and writes bfloat16 safetensors in shards of at most 15 MB, cards, data
    manifests and training logs, at most 25 MB in all. What does not fit is refused.
    """
    from casewright.finetune.ship import ship
    from casewright.finetune.training.silence import silence
    from casewright.serve.output import print_json, print_table

    with silence():
        made = ship(base, adapter, target)
    if as_json:
        print_json({"folder": str(made.folder), "bytes": dict(made.sizes), **made.card})
        return
    rows = [[name, f"{size:,}"] for name, size in made.sizes.items()]
    whole = ["in all", f"{sum(made.sizes.values()):,}"]
    print_table(["file", "bytes"], [*rows, whole], str(made.folder))
