"""`casewright bench …`: language models that plan or are trained, as commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from casewright.serve.cli.bench.options import RandomSize, Seed, WorkFolder, WritingModel
from casewright.serve.cli.bench.options import model_choice as chosen
from casewright.serve.cli.bench.report import measures
from casewright.serve.cli.options import (
    Adapter,
    Device,
    DomainName,
    DType,
    ModelSize,
    PlanLengths,
    PromptLengths,
)

if TYPE_CHECKING:
    from casewright.bench.report import Report

app = typer.Typer(add_completion=False)


@measures(app, "decoding")
def bench_decoding(
    domain: DomainName = "shopping",
    model: WritingModel = None,
    adapter: Adapter = None,
    size: RandomSize = None,
    device: Device = None,
    dtype: DType = None,
    plans: Annotated[int, typer.Option(min=1, help="Plans that each system writes.")] = 20,
    repeats: Annotated[int, typer.Option(min=1, help="How often each plan is written.")] = 1,
    examples: Annotated[
        int, typer.Option(min=0, help="Plan cases in the prompts that systems are compared on.")
    ] = 1,
    greedy: Annotated[
        int, typer.Option(min=0, help="Plans compared with masked greedy decoding's.")
    ] = 20,
    grammars: Annotated[
        int, typer.Option(min=1, help="Queries that the grammar alone is timed on.")
    ] = 200,
    held_out: Annotated[
        int, typer.Option(min=1, help="Queries that a trained model's own plans are scored on.")
    ] = 100,
    prompt_tokens: PromptLengths = None,
    plan_tokens: PlanLengths = None,
    seed: Annotated[int, typer.Option(help="Draws the queries, and random weights.")] = 0,
) -> Report:
    """Write the same plans by transformers' generate, by its masked form and by the decoder.

    A trained model writes its own plans too, with the case planner's as drafts and without.
    """
    from casewright.bench.decoding.measure import DecodingTrial, measure_decoding
    from casewright.bench.writing import read_range, read_shape

    trial = DecodingTrial(
        domain=domain,
        model=chosen(model, adapter, size, device, dtype, seed),
        plans=plans,
        repeats=repeats,
        examples=examples,
        greedy=greedy,
        grammars=grammars,
        held_out=held_out,
        shape=read_shape(prompt_tokens),
        plan_tokens=read_range(plan_tokens),
        seed=seed,
    )
    return measure_decoding(trial)


@measures(app, "latency")
def bench_latency(
    domain: DomainName = "shopping",
    model: WritingModel = None,
    adapter: Adapter = None,
    size: RandomSize = None,
    device: Device = None,
    dtype: DType = None,
    plans: Annotated[
        int, typer.Option(min=1, help="Questions for each number of steps, one to four.")
    ] = 10,
    repeats: Annotated[int, typer.Option(min=1, help="How often each is asked.")] = 1,
    prompt_tokens: PromptLengths = None,
    plan_tokens: PlanLengths = None,
    seed: Annotated[int, typer.Option(help="Draws the questions, and random weights.")] = 0,
) -> Report:
    """Plan in one call and by an agent that is asked for one step at a time, with one model.

    Some twenty minutes on two cores.
    """
    from casewright.bench.latency import measure_latency
    from casewright.bench.writing import WritingTrial, read_range, read_shape

    trial = WritingTrial(
        domain=domain,
        model=chosen(model, adapter, size, device, dtype, seed),
        plans=plans,
        repeats=repeats,
        shape=read_shape(prompt_tokens),
        plan_tokens=read_range(plan_tokens),
        seed=seed,
    )
    return measure_latency(trial)


@measures(app, "chat")
def bench_chat(
    domain: DomainName = "shopping",
    url: Annotated[
        str | None,
        typer.Option(
            help="An OpenAI-compatible server's API, for example http://localhost:8000/v1; by "
            "default one is started here, with a small random model that cannot plan.",
            metavar="URL",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="With --url, what it calls its model.", metavar="NAME")
    ] = None,
    queries: Annotated[int, typer.Option(min=1, help="Queries to plan for.")] = 20,
    tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="At most so many tokens an answer; by default the server's own limit, and 64 for "
            "the random model.",
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Deadline of a plan.")] = 30.0,
) -> Report:
    """Plan by a chat model over HTTP, beside the case planner: calls, tokens, time, what came.

    A server that needs a key reads it from OPENAI_API_KEY.
    """
    from casewright.bench.chat import measure_chat

    return measure_chat(domain, queries, url=url, model=model, tokens=tokens, seconds=seconds)


@measures(app, "training", plots=False)
def bench_training(
    size: ModelSize = "100m",
    recipe: Annotated[
        str, typer.Option(help="A recipe with an adapter: a TOML file, or one that ships.")
    ] = "mistral-7b-80gb",
    examples: Annotated[int, typer.Option(min=1, help="Examples, trained on once.")] = 32,
    repeats: Annotated[int, typer.Option(min=1, help="How often each system trains.")] = 1,
    device: Device = None,
    seed: Annotated[int, typer.Option(help="Draws examples and weights.")] = 0,
) -> Report:
    """Train an adapter by a recipe and by TRL's defaults: tokens a second, and memory."""
    from casewright.bench.training import TrainingTrial, measure_training

    return measure_training(TrainingTrial(size, recipe, examples, repeats, device, seed))


@measures(app, "reaper")
def bench_reaper(
    table: Annotated[
        list[str] | None,
        typer.Option(help="1, 2, 3 or studies; several may be given, all by default."),
    ] = None,
    work: WorkFolder = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps of each training; the recipe's by default.")
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            help="A model that trainings start from, not trained with these tools; else the "
            "recipe's base.",
            metavar="FOLDER",
        ),
    ] = None,
    planner: Annotated[
        Path | None,
        typer.Option(help="Table 1's planner; by default the one that ships.", metavar="FOLDER"),
    ] = None,
    instructions: Annotated[
        Path | None,
        typer.Option(
            help="Generic instructions; without them, rows with a share of them say so.",
            metavar="FOLDER",
        ),
    ] = None,
    tool: Annotated[
        str, typer.Option(help="The tool, and the class, that studies leave out.", metavar="NAME")
    ] = "customer_support",
    recipe: Annotated[
        str, typer.Option(help="Of the rows' trainings: a TOML file, or one that ships.")
    ] = "reaper",
    limit: Annotated[int, typer.Option(min=1, help="Most questions of each test set.")] = 100,
    jobs: Annotated[int, typer.Option(min=1, help="Trainings at once, each a process.")] = 1,
    seed: Seed = 0,
) -> Report:
    """Print REAPER's tables at a small model's size: every row is a training, asked in four ways.

    Hours the first time; --table and --steps shorten it. Interrupted, the same command goes on.
    """
    from casewright.bench.reaper.measure import measure_reaper
    from casewright.bench.reaper.trial import TABLES, ReaperTrial

    trial = ReaperTrial(
        tables=tuple(dict.fromkeys(table or TABLES)),
        recipe=recipe,
        steps=steps,
        start=start,
        planner=planner,
        instructions=instructions,
        tool=tool,
        limit=limit,
        jobs=jobs,
        seed=seed,
        **({} if work is None else {"folder": work}),
    )
    try:
        return measure_reaper(trial)
    except KeyboardInterrupt:
        typer.echo("Stopped. The same command goes on.", err=True)
        raise
