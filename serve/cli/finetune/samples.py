"""Some examples of a training set, for people to read."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from casewright.planner.prompt import CONSTRAINTS

if TYPE_CHECKING:
    from casewright.finetune.example import TrainingExample
    from casewright.finetune.examples.data_section import DataSection
    from casewright.finetune.examples.make_training_set import Ingredients
    from casewright.finetune.examples.training_set import TrainingSet
    from casewright.stores import Encoder

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
        drawn[task] = [examples[place] for place in places]
    return drawn


def print_samples(samples: Samples) -> None:
    """Print examples, prompt and completion; the constraints, always the same, in one line."""
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
