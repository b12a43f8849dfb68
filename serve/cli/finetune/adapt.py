"""`casewright finetune adapt`: a planner of one's own, from some annotated messages."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from casewright.serve.options import AsJson


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("adapt")(finetune_adapt)


def finetune_adapt(
    domain: Annotated[
        str, typer.Option("--domain", "-d", help="Whose tools: FILE.py:NAME, or a domain's name.")
    ],
    source: Annotated[
        Path,
        typer.Option("--input", help="20 to 500 annotated messages, JSON Lines.", metavar="FILE"),
    ],
    target: Annotated[
        Path,
        typer.Option("--output", help="The folder to write the adapter to.", metavar="FOLDER"),
    ],
    minutes: Annotated[
        float, typer.Option(min=0, help="What all of it may take, about.", metavar="MINUTES")
    ] = 10.0,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="The adapter to start from; the one that ships by default.",
            metavar="FOLDER",
        ),
    ] = None,
    recipe: Annotated[
        str, typer.Option(help="A recipe for such a training, a TOML file.", metavar="FILE")
    ] = "adapt",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last whole checkpoint, if any.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Train the language model that ships on with annotated messages for your own tools.

    Writes an adapter, which ask, plan, serve and eval take as --adapter.
    """
    begun = time.monotonic()
    from casewright.finetune.adapt import adapted_data, training_minutes
    from casewright.finetune.examples.make_training_set import make_training_set
    from casewright.finetune.examples.training_set import write_training_set
    from casewright.finetune.recipe.recipe import Recipe
    from casewright.finetune.recipe.shipped import find_recipe
    from casewright.finetune.training.run import check_writable
    from casewright.finetune.training.train import train
    from casewright.planner import read_annotated
    from casewright.planner.shipped import shipped_planner
    from casewright.serve.finetune_ingredients import ingredients
    from casewright.serve.output import print_json, print_table
    from casewright.stores import default_encoder
    from casewright.stores.progress import note

    check_writable(target)
    first = start or shipped_planner()
    told = Recipe.read(find_recipe(recipe), files=False)
    queries = read_annotated(source)
    data = adapted_data(told.data, domain, source, queries)
    encoder = default_encoder()
    made = make_training_set(data, ingredients(data, encoder), encoder)
    note(
        f"Training on {len(made.train)} examples of {len(queries)} messages, "
        f"at most {minutes:g} minutes …"
    )
    with TemporaryDirectory(prefix="casewright-adapt-") as folder:
        place = Path(folder) / "set"
        write_training_set(made, place)
        result = train(
            *(told.model, told.lora, told.training, place, target),
            start=first,
            resume=resume,
            minutes=training_minutes(minutes, time.monotonic() - begun),
        )
    following = [
        f"casewright eval --domain {domain} --input test.jsonl --adapter {target}",
        f'casewright ask --domain {domain} --adapter {target} "…"',
    ]
    if as_json:
        print_json({"folder": str(target), "next": following, **result.card})
        return
    rows = [[name, value] for name, value in result.card["metrics"].items()]
    print_table(["figure", "value"], rows, str(target))
    typer.echo("Measure it on messages that it has not seen, and ask:")
    typer.echo("".join(f"  {line}\n" for line in following), nl=False)
