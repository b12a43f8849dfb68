"""`casewright finetune train`: from a training set to a planner's model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.serve.cli.options import AsJson

app = typer.Typer(add_completion=False)


@app.command("train")
def finetune_train(
    recipe: Annotated[
        str,
        typer.Option(help="A recipe, a TOML file, or the name of one that ships.", metavar="FILE"),
    ],
    data: Annotated[
        Path,
        typer.Option(help="A folder that casewright finetune data wrote.", metavar="FOLDER"),
    ],
    target: Annotated[
        Path,
        typer.Option("--output", help="The folder to write the model to.", metavar="FOLDER"),
    ],
    base: Annotated[
        str | None,
        typer.Option(
            help="What to train, instead of the recipe's model.base: a folder, or a name at "
            "Hugging Face.",
            metavar="NAME",
        ),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Start from the weights of an adapter that was trained before, of the same base, "
            "rank and layers.",
            metavar="FOLDER",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last whole checkpoint, if any.")
    ] = False,
    merge: Annotated[
        bool, typer.Option("--merge", help="Also write the adapter merged into its base.")
    ] = False,
    minutes: Annotated[
        float | None,
        typer.Option(min=0, help="End after so long with what was learned; --from goes on."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train a language model to plan: an adapter (LoRA), as a recipe says.

    Writes what is served by --planner local:FOLDER, a model card, and log.jsonl. On several GPUs:
    accelerate launch -m casewright finetune train …
    """
    from casewright.finetune.recipe.recipe import Recipe
    from casewright.finetune.recipe.shipped import find_recipe
    from casewright.finetune.training.placement import rank
    from casewright.finetune.training.train import train
    from casewright.serve.cli.output import print_json, print_table

    sections = Recipe.read(find_recipe(recipe), files=False)
    try:
        result = train(
            sections.model if base is None else sections.model.based_on(base),
            sections.lora,
            sections.training,
            data,
            target,
            start=start,
            resume=resume,
            merge=merge,
            minutes=minutes,
        )
    except KeyboardInterrupt:
        if not rank():
            typer.echo("Stopped. The same command with --resume goes on.", err=True)
        raise
    if rank():
        return
    merged = {} if result.merged is None else {"merged": str(result.merged)}
    if as_json:
        print_json({"folder": str(result.folder), **merged, **result.card})
        return
    rows = [[name, value] for name, value in result.card["metrics"].items()]
    print_table(["figure", "value"], rows, str(result.folder))
