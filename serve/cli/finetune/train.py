"""`casewright finetune train` trains a model; `ensemble` chooses the constants of the ensemble."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Option, Typer, echo

from casewright.serve.cli.options import AsJson
from casewright.serve.cli.output import print_facts, print_json, print_table

app = Typer(add_completion=False)


@app.command("train")
def finetune_train(
    recipe: Annotated[str, Option(help="A shipped recipe's name, or a file.", metavar="RECIPE")],
    data: Annotated[Path, Option(help="The folder of `casewright finetune data`.")],
    target: Annotated[Path, Option("--output", help="The folder to write the model to.")],
    base: Annotated[str | None, Option(help="A base model in place of the recipe's.")] = None,
    start: Annotated[
        Path | None,
        Option("--from", help="An adapter of the same base, rank and layers to start from."),
    ] = None,
    resume: Annotated[bool, Option("--resume", help="Continue from the last checkpoint.")] = False,
    merge: Annotated[bool, Option("--merge", help="Also write the merged model.")] = False,
    minutes: Annotated[float | None, Option(min=0, help="Limit of the training's time.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a language model to plan, as an adapter (LoRA), with the settings of a recipe.

    The folder gets the model for --planner local:FOLDER, a card, and log.jsonl. On several GPUs:
    accelerate launch -m casewright finetune train …
    """
    from casewright.finetune.recipe.recipe import Recipe
    from casewright.finetune.recipe.shipped import find_recipe
    from casewright.finetune.training.placement import rank
    from casewright.finetune.training.train import train

    parsed_recipe = Recipe.read(find_recipe(recipe), check_files=False)
    model = parsed_recipe.model if base is None else parsed_recipe.model.based_on(base)
    inputs = (model, parsed_recipe.lora, parsed_recipe.training, data, target)
    # On several GPUs, only the first process (rank 0) prints.
    try:
        result = train(*inputs, start=start, resume=resume, merge=merge, minutes=minutes)
    except KeyboardInterrupt:
        if rank() == 0:
            echo("Stopped. The same command with --resume continues.", err=True)
        raise
    if rank() != 0:
        return
    merged = {} if result.merged is None else {"merged": str(result.merged)}
    if as_json:
        print_json({"folder": str(result.folder), **merged, **result.card})
        return
    rows = [[name, value] for name, value in result.card["metrics"].items()]
    print_table(["figure", "value"], rows, str(result.folder))


@app.command("ensemble")
def finetune_ensemble(
    target: Annotated[Path, Option("--output", help="New file for the constants.", metavar="FILE")],
    as_json: AsJson = False,
) -> None:
    """Choose the ensemble's constants on the validation toolboxes; it takes some minutes."""
    from casewright.finetune.corpus import read_corpus
    from casewright.finetune.ensemble import candidate_plans, fit_card
    from casewright.planner.ensemble import EnsemblePlanner
    from casewright.planner.model_planner import ModelPlanner
    from casewright.planner.named import ModelSettings
    from casewright.planner.named_planners import local_model
    from casewright.planner.parser_planner import ParserReuse
    from casewright.planner.shipped import SHIPPED

    model = ModelPlanner(local_model(SHIPPED, ModelSettings()), seconds=600.0)
    ensemble = EnsemblePlanner(ParserReuse(store=None), lambda: model)
    card, figures = fit_card(candidate_plans(ensemble, read_corpus("validation")))
    card.write(target)
    print_facts({**asdict(card), **figures}, as_json=as_json)
