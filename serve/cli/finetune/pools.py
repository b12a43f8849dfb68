"""`casewright finetune pools`: other names and descriptions for tools, by a chat model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from casewright.serve.cli.finetune.queries import fail, shown
from casewright.serve.cli.options import AsJson

app = typer.Typer(add_completion=False)


@app.command("pools")
def finetune_pools(
    toolbox: Annotated[Path, typer.Option(help="A file of your own tools, JSON.", metavar="FILE")],
    model: Annotated[str, typer.Option(help="A chat model, as provider:model.", metavar="NAME")],
    output: Annotated[
        Path, typer.Option(help="The pools; tools that it has are not asked for.", metavar="FILE")
    ],
    seconds: Annotated[float, typer.Option(min=0.1, help="Deadline of one tool's call.")] = 120.0,
    as_json: AsJson = False,
) -> None:
    """Ask a chat model for other names and descriptions of your tools, which TEvo draws from.

    Run again, it goes on where it stopped, and asks once more for tools that got no pool.
    """
    from casewright.finetune.examples.pool_maker import PoolMaker
    from casewright.finetune.queries.query_files import check_output
    from casewright.planner import chat_model
    from casewright.serve.cli.output import print_json
    from casewright.stores.progress import progress_bar
    from casewright.tools import toolbox_from_file

    check_output(output, toolbox)
    tools = toolbox_from_file(toolbox)
    with progress_bar("Asking for pools", len(tools), show=shown(True)) as advance:
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
    else:
        _print_pools(rows, made.failed, str(output))
    if made.failed:
        fail(
            f"{len(made.failed)} of {len(tools)} tools have no pool. Run the command again to ask "
            "for them once more."
        )


def _print_pools(rows: Sequence[Mapping[str, Any]], failed: Mapping[str, str], title: str) -> None:
    from casewright.serve.cli.output import print_table

    columns = ["tool", "names", "descriptions", "dropped"]
    print_table(columns, [[row[column] for column in columns] for row in rows], title)
    for name, why in failed.items():
        typer.echo(f"No pool for {name}: {why}")
