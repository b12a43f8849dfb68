"""`casewright finetune data` and `corpus`: training sets, and the corpus of toolboxes."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option, Typer, echo

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson
from casewright.serve.cli.output import print_json, print_table

if TYPE_CHECKING:
    from casewright.finetune.example import TrainingExample
    from casewright.finetune.examples.data_section import DataSection
    from casewright.finetune.examples.make_training_set import TrainingInputs
    from casewright.finetune.examples.training_set import TrainingSet
    from casewright.stores import Encoder
    from casewright.tools import Toolbox

app = Typer(add_completion=False)


@app.command("corpus")
def finetune_corpus(
    export: Annotated[
        Path | None,
        Option(help="Folder to copy each toolbox to: tools.json, queries.jsonl, pools.json."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the shipped corpus of toolboxes, and count its contents by split.

    Each toolbox is in one split: training, validation (for tuning) or measuring (for tests).
    """
    from casewright.finetune import corpus

    toolboxes = corpus.read_corpus()
    counts = corpus.corpus_counts(toolboxes, corpus.read_second_reading())
    folders = [] if export is None else corpus.export_corpus(toolboxes, export)
    if as_json:
        print_json({"counts": counts, "exported": [str(folder) for folder in folders]})
        return
    rows = [[name, *(split[name] for split in counts.values())] for name in counts["all"]]
    print_table(["counted", *counts], rows, "corpus")
    if export is not None:
        print(f"{len(folders)} toolboxes are in {export}.")


def training_inputs(data: DataSection) -> TrainingInputs:
    """Return a recipe's queries and tools, and all test queries, which must not be trained on."""
    from casewright.domains import domain_names, find_domain
    from casewright.finetune.examples.make_training_set import TrainingInputs
    from casewright.finetune.tool_pools import read_pools
    from casewright.planner import read_annotated
    from casewright.tools import toolbox_from_file

    if data.queries is not None:
        queries = read_annotated(data.queries)
    elif not (queries := find_domain(str(data.domain)).queries()):
        raise InputError(
            f"data.domain: {data.domain!r} has no annotated queries. Add data.queries, a JSON "
            "Lines file of them."
        )
    pools_file = data.pools
    if data.toolbox is not None:
        toolbox = toolbox_from_file(data.toolbox)
    else:
        toolbox = domain_toolbox(str(data.domain))
        # A domain's tool pools fit only the domain's toolbox.
        pools_file = pools_file or find_domain(str(data.domain)).tool_pools
    conversations = find_domain(data.domain).conversations() if data.domain else ()
    return TrainingInputs(
        queries=queries,
        toolbox=toolbox,
        pools=read_pools(pools_file, toolbox) if pools_file else {},
        distractors=tuple(toolbox_from_file(data.distractors)) if data.distractors else (),
        measuring=[q.query for d in domain_names() for q in find_domain(d).measuring_queries()],
        follow_ups=[
            query
            for conversation in conversations
            if not conversation.is_test_data
            for _, query in conversation.follow_ups
        ],
    )


def domain_toolbox(name: str) -> Toolbox:
    """Return a domain's toolbox. Its tools cannot be called: the domain's stores are closed."""
    from casewright.domains import find_domain
    from casewright.serve.session.defaults import open_stores

    with closing(open_stores(find_domain(name))) as opened:
        return opened.toolbox


def _draw_samples(training_set: TrainingSet, count: int) -> dict[str, list[TrainingExample]]:
    """Return up to ``count`` random examples of each task."""
    examples_by_task: dict[str, list[TrainingExample]] = defaultdict(list)
    for example in training_set.examples:
        examples_by_task[example.task].append(example)
    samples = {}
    for task, examples in sorted(examples_by_task.items()):
        rng = random.Random(f"{training_set.manifest['seed']}:sample:{task}")
        indices = sorted(rng.sample(range(len(examples)), min(count, len(examples))))
        samples[task] = [examples[index] for index in indices]
    return samples


def _print_samples(samples: Mapping[str, Sequence[TrainingExample]]) -> None:
    """Print prompts and completions; shorten the constraints, which are the same in all prompts."""
    from casewright.planner.prompt import CONSTRAINTS

    for task, examples in samples.items():
        echo(f"\n══ {task}: {len(examples)} examples")
        for number, example in enumerate(examples, 1):
            prompt = str(example.prompt).replace(CONSTRAINTS, "Rules: …")
            echo(f"\n── {task} {number}: {example.id} (from {example.source})")
            echo(prompt)
            echo("▶ " + example.completion.replace("\n", "\n  "))


def _sampled_queries(
    data: DataSection, inputs: TrainingInputs, encoder: Encoder, count: int
) -> dict[str, list[str]]:
    """Return up to ``count`` random queries of the initial pool and of the added queries, by title.

    The result is empty for a recipe that takes all queries or random queries.
    """
    from casewright.finetune.examples.query_pool import query_pool
    from casewright.finetune.queries.choose import choose_queries, initial_queries

    if data.sampling.method in ("all", "random"):
        return {}
    queries = query_pool(inputs.queries, inputs.toolbox, inputs.measuring).queries
    initial = initial_queries(queries, data.sampling, data.seed)
    initial_ids = {query.record.id for query in initial}
    chosen = choose_queries(queries, data.sampling, encoder, data.seed)
    added = [query for query in chosen if query.record.id not in initial_ids]
    rng = random.Random(f"{data.seed}:sample:sampling")
    return {
        name: [query.query for query in rng.sample(group, min(count, len(group)))]
        for name, group in (("initial pool", initial), (f"added by {data.sampling.method}", added))
    }


@app.command("data")
def finetune_data(
    recipe: Annotated[str, Option(help="A shipped recipe's name, or a file.", metavar="RECIPE")],
    target: Annotated[Path | None, Option("--output", help="The training set's folder.")] = None,
    sample: Annotated[int | None, Option(min=1, help="Also print examples of each task.")] = None,
    sets: Annotated[
        Path | None,
        Option(help="Folder for the recipe's relative paths; by default the recipe's folder."),
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing training set.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a planner's training set from a recipe.

    As in REAPER, the set has planning examples with varied tools (TEvo), other planning tasks
    (TTG), sampled queries (DQS) and general instructions. --output writes train.jsonl,
    validation.jsonl and manifest.json; without --output, the command only prints samples.
    """
    from casewright.domains import domain_names
    from casewright.finetune.examples.make_training_set import make_training_set
    from casewright.finetune.examples.training_set import check_target, write_training_set
    from casewright.finetune.recipe.recipe import Recipe
    from casewright.finetune.recipe.shipped import find_recipe
    from casewright.stores import default_encoder

    if target is None and sample is None:
        raise InputError("Give --output FOLDER to write the set, or --sample N to print examples.")
    data = Recipe.read(find_recipe(recipe), domains=domain_names(), folder=sets).data
    if target is not None:
        check_target(target, force=force)
    encoder = default_encoder()
    inputs = training_inputs(data)
    training_set = make_training_set(data, inputs, encoder)
    if target is not None:
        write_training_set(training_set, target, force=force)
    samples = _draw_samples(training_set, sample) if sample is not None else {}
    queries = _sampled_queries(data, inputs, encoder, sample) if sample is not None else {}
    if as_json:
        facts: dict[str, Any] = {"folder": str(target)} if target is not None else {}
        facts["manifest"] = training_set.manifest
        if sample is not None:
            facts["samples"] = {
                task: [e.to_row() for e in examples] for task, examples in samples.items()
            }
        if queries:
            facts["queries"] = queries
        print_json(facts)
        return
    _print_samples(samples)
    for name, questions in queries.items():
        echo(f"\n══ {name}: {len(questions)} queries")
        for question in questions:
            echo(f"── {question}")
    _print_counts(training_set.manifest, str(target or "Not written"))


def _print_counts(manifest: Mapping[str, Any], title: str) -> None:
    split_counts = {file.partition(".")[0]: counts for file, counts in manifest["examples"].items()}
    columns = split_counts.values()
    tasks = sorted({task for counts in columns for task in counts["tasks"]})
    rows = [[task, *(counts["tasks"].get(task, 0) for counts in columns)] for task in tasks]
    rows.append(["all", *(counts["all"] for counts in columns)])
    print_table(["task", *split_counts], rows, title)
    queries, instructions = manifest["queries"], manifest["instructions"]
    per_task = instructions["per_planning_task"]
    ratio = f", {per_task:.2f} for each planning task" if per_task else ""
    echo(
        f"Of {queries['given']:,} queries {queries['taken']:,} were taken, "
        f"{queries['for_validation']:,} of them for validation; "
        f"{queries['left_out_for_measuring']:,} are held out for tests. "
        f"{instructions['taken']:,} of {instructions['pool']:,} instructions were taken{ratio}."
    )
    for facts in manifest.get("toolsets", ()):
        benchmarks = ", ".join(facts["contaminates"]) or "nothing"
        echo(
            f"Of {facts['reader']} {facts['queries']:,} queries were taken and "
            f"{sum(facts['refused'].values()):,} were not. A model that was trained on this set "
            f"must not be tested on: {benchmarks}."
        )
