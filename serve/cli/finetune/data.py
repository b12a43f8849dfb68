"""`casewright finetune data`: from annotated queries and a toolbox to a training set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Mapping

RecipeName = Annotated[
    str,
    typer.Option(
        "--recipe", help="A recipe, a TOML file, or the name of one that ships.", metavar="FILE"
    ),
]


app = typer.Typer(add_completion=False)


@app.command("data")
def finetune_data(
    recipe: RecipeName,
    target: Annotated[
        Path | None,
        typer.Option("--output", help="The folder to write the training set to.", metavar="FOLDER"),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Also print so many examples of each task.", metavar="N"),
    ] = None,
    sets: Annotated[
        Path | None,
        typer.Option(
            help="Where the files and public sets are that the recipe names; beside it by default.",
            metavar="FOLDER",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the training set in the output folder.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a training set for a planner: TEvo, TTG, DQS and instructions, as a recipe says.

    Writes train.jsonl, validation.jsonl and manifest.json; with --sample and no --output, nothing.
    """
    from casewright.domains import domain_names
    from casewright.finetune.examples.make_training_set import make_training_set
    from casewright.finetune.examples.training_set import check_target, write_training_set
    from casewright.finetune.recipe.recipe import Recipe
    from casewright.finetune.recipe.shipped import find_recipe
    from casewright.serve.cli.finetune.ingredients import ingredients
    from casewright.serve.cli.finetune.samples import (
        print_queries,
        print_samples,
        sampled_queries,
        samples_of,
    )
    from casewright.serve.cli.output import print_json
    from casewright.stores import default_encoder

    if target is None and sample is None:
        raise InputError("Give --output FOLDER to write the set, or --sample N to look at it.")
    data = Recipe.read(find_recipe(recipe), domains=domain_names(), folder=sets).data
    if target is not None:
        check_target(target, force=force)
    encoder = default_encoder()
    given = ingredients(data, encoder)
    made = make_training_set(data, given, encoder)
    if target is not None:
        write_training_set(made, target, force=force)
    shown = samples_of(made, sample) if sample is not None else {}
    queries = sampled_queries(data, given, encoder, sample) if sample is not None else {}
    if as_json:
        told: dict[str, Any] = {"folder": str(target)} if target is not None else {}
        told["manifest"] = made.manifest
        if sample is not None:
            rows = {task: [one.to_row() for one in examples] for task, examples in shown.items()}
            told |= {"samples": rows, **({"queries": queries} if queries else {})}
        print_json(told)
        return
    print_samples(shown)
    print_queries(queries)
    _print_counts(made.manifest, str(target or "Not written"))


def _print_counts(manifest: Mapping[str, Any], title: str) -> None:
    from casewright.serve.cli.output import print_table

    sides = {name.partition(".")[0]: told for name, told in manifest["examples"].items()}
    tasks = sorted({task for told in sides.values() for task in told["tasks"]})
    rows = [[task, *(told["tasks"].get(task, 0) for told in sides.values())] for task in tasks]
    rows.append(["all", *(told["all"] for told in sides.values())])
    print_table(["task", *sides], rows, title)
    queries, generic = manifest["queries"], manifest["instructions"]
    ratio = generic["per_planning_task"]
    beside = f", {ratio:.2f} for each planning task" if ratio else ""
    typer.echo(
        f"Of {queries['given']:,} queries {queries['taken']:,} were taken, "
        f"{queries['for_validation']:,} of them for validation; "
        f"{queries['left_out_for_measuring']:,} are for measuring and were left out. "
        f"{generic['taken']:,} of {generic['pool']:,} instructions were taken{beside}."
    )
    for told in manifest.get("toolsets", ()):
        spoiled = ", ".join(told["contaminates"]) or "nothing"
        typer.echo(
            f"Of {told['reader']} {told['queries']:,} queries were taken and "
            f"{sum(told['refused'].values()):,} were not; it can no longer measure: {spoiled}."
        )
