"""`casewright finetune train`: a planner's model from a training set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option, Typer, echo

from casewright.serve.cli.options import AsJson
from casewright.serve.cli.output import print_json, print_table

app = Typer(add_completion=False)


@app.command("train")
def finetune_train(
    recipe: Annotated[str, Option(help="A recipe: a TOML file, or a shipped one.", metavar="FILE")],
    data: Annotated[
        Path, Option(help="A folder that casewright finetune data wrote.", metavar="FOLDER")
    ],
    target: Annotated[
        Path, Option("--output", help="The folder to write the model to.", metavar="FOLDER")
    ],
    base: Annotated[
        str | None, Option(help="What to train instead of the recipe's base.", metavar="NAME")
    ] = None,
    start: Annotated[
        Path | None,
        Option(
            "--from",
            help="An adapter of the same base, rank and layers to start from.",
            metavar="FOLDER",
        ),
    ] = None,
    resume: Annotated[
        bool, Option("--resume", help="Go on from the last whole checkpoint, if any.")
    ] = False,
    merge: Annotated[
        bool, Option("--merge", help="Also write the adapter merged into its base.")
    ] = False,
    minutes: Annotated[
        float | None, Option(min=0, help="End after so long; --from goes on.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train a language model to plan: an adapter (LoRA), by a recipe.

    Writes the model for --planner local:FOLDER, a model card, and log.jsonl. On several GPUs:
    accelerate launch -m casewright finetune train …
    """
    from casewright.finetune.recipe.recipe import Recipe
    from casewright.finetune.recipe.shipped import find_recipe
    from casewright.finetune.training.placement import rank
    from casewright.finetune.training.train import train

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
            echo("Stopped. The same command with --resume goes on.", err=True)
        raise
    if rank():
        return
    merged = {} if result.merged is None else {"merged": str(result.merged)}
    if as_json:
        print_json({"folder": str(result.folder), **merged, **result.card})
        return
    rows = [[name, value] for name, value in result.card["metrics"].items()]
    print_table(["figure", "value"], rows, str(result.folder))
