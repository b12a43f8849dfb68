"""`casewright finetune pools`: other names and descriptions for tools, by a chat model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.errors import InputError
from casewright.serve.options import AsJson


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("pools")(finetune_pools)


def finetune_pools(
    toolbox: Annotated[Path, typer.Option(help="A file of your own tools, JSON.", metavar="FILE")],
    model: Annotated[str, typer.Option(help="A chat model, as provider:model.", metavar="NAME")],
    output: Annotated[
        Path, typer.Option(help="The pools; tools that it has are not asked for.", metavar="FILE")
    ],
    seconds: Annotated[float, typer.Option(min=0.1, help="Deadline of one tool's call.")] = 120.0,
    as_json: AsJson = False,
) -> None:
    """Ask a chat model for other names and descriptions of your tools, which TEvo draws from."""
    from casewright.finetune.examples.pool_maker import PoolMaker
    from casewright.planner import chat_model
    from casewright.serve.output import print_json, print_table
    from casewright.stores.progress import progress_bar
    from casewright.tools import toolbox_from_file

    if output.is_dir():
        raise InputError(f"--output {output} is a folder. Give the name of a file in it.")
    tools = toolbox_from_file(toolbox)
    with progress_bar("Asking for pools", len(tools)) as advance:
        maker = PoolMaker(chat_model(model), seconds=seconds, tell=lambda tool: advance(1))
        made = maker.make(tools, output)
    rows = [
        {
            "tool": name,
            "names": len(pool.names),
            "descriptions": len(pool.descriptions),
            "dropped": made.dropped.get(name, 0),
        }
        for name, pool in made.pools.items()
    ]
    if as_json:
        print_json({"file": str(output), "tools": rows, "failed": made.failed})
        return
    columns = ["tool", "names", "descriptions", "dropped"]
    print_table(columns, [[row[column] for column in columns] for row in rows], str(output))
    for name, why in made.failed.items():
        typer.echo(f"No pool for {name}: {why} Run the command again to ask for it once more.")
