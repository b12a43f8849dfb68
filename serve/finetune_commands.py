"""`casewright finetune …`: training, as commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.serve.options import AsJson, DomainName

finetune = typer.Typer(help="Train planners on annotated queries.")


@finetune.command("reader")
def finetune_reader(
    target: Annotated[Path, typer.Option("--output", help="The folder to write the reader to.")],
    domain: DomainName = "shopping",
    source: Annotated[
        Path | None,
        typer.Option("--input", help="Annotated queries, JSON Lines; the domain's by default."),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the queries.")] = 6,
    seed: Annotated[int, typer.Option(help="Of weights and order.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train the case planner's reader on annotated queries: minutes on two cores."""
    from casewright.domains import find_domain
    from casewright.finetune.reader_training import ReaderSettings, train_reader
    from casewright.planner import read_annotated
    from casewright.planner.reader_weights import check_target, save_reader
    from casewright.serve.output import print_json, print_table

    queries = find_domain(domain).queries() if source is None else read_annotated(source)
    check_target(target)
    network, card = train_reader(queries, ReaderSettings(epochs=epochs, seed=seed))
    save_reader(target, network, card)
    told = {"folder": str(target), **card.training}
    if as_json:
        print_json(told)
    else:
        print_table(["setting", "value"], [[name, str(value)] for name, value in told.items()])
