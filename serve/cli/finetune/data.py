"""`casewright finetune data` and `corpus`: training sets, and the corpus of toolboxes."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Mapping

    from casewright.finetune.example import TrainingExample
    from casewright.finetune.examples.data_section import DataSection
    from casewright.finetune.examples.make_training_set import Ingredients
    from casewright.finetune.examples.training_set import TrainingSet
    from casewright.stores import Encoder


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


Samples = Mapping[str, Sequence["TrainingExample"]]


def samples_of(made: TrainingSet, count: int) -> Samples:
    """Draw examples of each task, by the set's own seed, in the set's order.

    Args:
        made: The set.
        count: How many of each task; all, where there are fewer.
    """
    by_task: dict[str, list[TrainingExample]] = defaultdict(list)
    for example in made.examples:
        by_task[example.task].append(example)
    drawn = {}
    for task, examples in sorted(by_task.items()):
        rng = random.Random(f"{made.manifest['seed']}:sample:{task}")
        places = sorted(rng.sample(range(len(examples)), min(count, len(examples))))
        drawn[task] = [examples[index] for index in places]
    return drawn


def print_samples(samples: Samples) -> None:
    """Print examples, prompt and completion; the constraints, always the same, in one line."""
    from casewright.planner.prompt import CONSTRAINTS

    for task, examples in samples.items():
        typer.echo(f"\n══ {task}: {len(examples)} examples")
        for number, example in enumerate(examples, 1):
            prompt = str(example.prompt).replace(CONSTRAINTS, "Rules: …")
            typer.echo(f"\n── {task} {number}: {example.id} (from {example.source})")
            typer.echo(prompt)
            typer.echo("▶ " + example.completion.replace("\n", "\n  "))


def sampled_queries(
    data: DataSection, given: Ingredients, encoder: Encoder, count: int
) -> dict[str, list[str]]:
    """Draw queries of the initial pool, and of those that sampling added to it.

    Args:
        data: Says how queries are sampled.
        given: What is sampled.
        encoder: What it is sampled with.
        count: How many of each to draw.

    Returns:
        Questions, by ``initial pool`` and what was done to add to it; nothing where all queries
        are taken, or any.
    """
    from casewright.finetune.examples.query_pool import query_pool
    from casewright.finetune.queries.choose import choose_queries, initial_queries

    if data.sampling.method in ("all", "random"):
        return {}
    queries = query_pool(given.queries, given.toolbox, given.measuring).queries
    initial = initial_queries(queries, data.sampling, data.seed)
    known = {query.record.id for query in initial}
    chosen = choose_queries(queries, data.sampling, encoder, data.seed)
    added = [query for query in chosen if query.record.id not in known]
    rng = random.Random(f"{data.seed}:sample:sampling")
    return {
        name: [query.query for query in rng.sample(side, min(count, len(side)))]
        for name, side in (("initial pool", initial), (f"added by {data.sampling.method}", added))
    }


def print_queries(drawn: Mapping[str, Sequence[str]]) -> None:
    """Print queries by what they are of."""
    for name, queries in drawn.items():
        typer.echo(f"\n══ {name}: {len(queries)} queries")
        for query in queries:
            typer.echo(f"── {query}")


RecipeName = Annotated[
    str,
    typer.Option(
        "--recipe", help="A recipe, a TOML file, or the name of one that ships.", metavar="FILE"
    ),
]


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
    from casewright.serve.cli.output import print_json
    from casewright.stores import default_encoder

    if target is None and sample is None:
        raise InputError("Give --output FOLDER to write the set, or --sample N to look at it.")
    data = Recipe.read(find_recipe(recipe), domains=domain_names(), folder=sets).data
    if target is not None:
        check_target(target, force=force)
    encoder = default_encoder()
    given = ingredients(data, encoder)
    result = make_training_set(data, given, encoder)
    if target is not None:
        write_training_set(result, target, force=force)
    shown = samples_of(result, sample) if sample is not None else {}
    queries = sampled_queries(data, given, encoder, sample) if sample is not None else {}
    if as_json:
        facts: dict[str, Any] = {"folder": str(target)} if target is not None else {}
        facts["manifest"] = result.manifest
        if sample is not None:
            rows = {
                task: [example.to_row() for example in examples] for task, examples in shown.items()
            }
            facts |= {"samples": rows, **({"queries": queries} if queries else {})}
        print_json(facts)
        return
    print_samples(shown)
    print_queries(queries)
    _print_counts(result.manifest, str(target or "Not written"))


def _print_counts(manifest: Mapping[str, Any], title: str) -> None:
    from casewright.serve.cli.output import print_table

    sides = {name.partition(".")[0]: facts for name, facts in manifest["examples"].items()}
    tasks = sorted({task for facts in sides.values() for task in facts["tasks"]})
    rows = [[task, *(facts["tasks"].get(task, 0) for facts in sides.values())] for task in tasks]
    rows.append(["all", *(facts["all"] for facts in sides.values())])
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
    for facts in manifest.get("toolsets", ()):
        spoiled = ", ".join(facts["contaminates"]) or "nothing"
        typer.echo(
            f"Of {facts['reader']} {facts['queries']:,} queries were taken and "
            f"{sum(facts['refused'].values()):,} were not; it can no longer measure: {spoiled}."
        )
