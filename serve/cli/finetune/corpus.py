"""`casewright finetune corpus`: what the corpus of toolboxes holds, and its files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.serve.cli.options import AsJson

app = typer.Typer(add_completion=False)


@app.command("corpus")
def finetune_corpus(
    export: Annotated[
        Path | None,
        typer.Option(
            help="Also write each toolbox to a folder of its own below this one: tools.json, "
            "queries.jsonl and pools.json, as --toolbox, --input and data.pools take them.",
            metavar="DIR",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the corpus of toolboxes that ships, and count what it holds, by split.

    Splits are of whole toolboxes: training, validation (for tuning) and measuring.
    """
    from casewright.finetune.corpus import (
        corpus_counts,
        export_corpus,
        read_corpus,
        read_second_reading,
    )
    from casewright.serve.cli.output import print_json, print_table

    boxes = read_corpus()
    counts = corpus_counts(boxes, read_second_reading())
    folders = [] if export is None else export_corpus(boxes, export)
    if as_json:
        print_json({"counts": counts, "exported": [str(folder) for folder in folders]})
        return
    rows = [[name, *(own[name] for own in counts.values())] for name in counts["all"]]
    print_table(["counted", *counts], rows, "corpus")
    if export is not None:
        print(f"{len(folders)} toolboxes are in {export}.")
