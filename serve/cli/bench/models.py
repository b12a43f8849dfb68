"""`casewright bench …`: language models that plan or are trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer, echo

from casewright.serve.cli.bench.options import (
    RandomSize,
    Seed,
    WorkFolder,
    WritingModel,
    model_choice,
)
from casewright.serve.cli.bench.report import measures
from casewright.serve.cli.options import Adapter, Device, DomainName, DType

if TYPE_CHECKING:
    from casewright.bench.report import Report

app = Typer(add_completion=False)


@measures(app, "decoding")
def bench_decoding(
    domain: DomainName = "shopping",
    model: WritingModel = None,
    adapter: Adapter = None,
    size: RandomSize = None,
    device: Device = None,
    dtype: DType = None,
    plans: Annotated[int, Option(min=1, help="Plans that each system writes.")] = 20,
    repeats: Annotated[int, Option(min=1, help="How often each plan is written.")] = 1,
    examples: Annotated[
        int, Option(min=0, help="Plan cases in the prompts that systems are compared on.")
    ] = 1,
    grammars: Annotated[
        int, Option(min=1, help="Queries that the grammar alone is timed on.")
    ] = 200,
    held_out: Annotated[
        int, Option(min=1, help="Queries that a trained model's own plans are scored on.")
    ] = 100,
    seed: Annotated[int, Option(help="Draws the queries, and random weights.")] = 0,
) -> Report:
    """Write the same plans by transformers' generate, by its masked form and by the decoder.

    A trained model writes its own plans too, with the case planner's as drafts and without.
    """
    from casewright.bench.decoding.measure import DecodingTrial, measure_decoding

    trial = DecodingTrial(
        domain=domain,
        model=model_choice(model, adapter, size, device, dtype, seed),
        plans=plans,
        repeats=repeats,
        examples=examples,
        grammars=grammars,
        held_out=held_out,
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
        int, Option(min=1, help="Questions for each number of steps, one to four.")
    ] = 10,
    repeats: Annotated[int, Option(min=1, help="How often each is asked.")] = 1,
    seed: Annotated[int, Option(help="Draws the questions, and random weights.")] = 0,
) -> Report:
    """Plan in one call and by an agent that is asked for one step at a time, with one model.

    Some twenty minutes on two cores.
    """
    from casewright.bench.latency import measure_latency
    from casewright.bench.models import WritingTrial

    trial = WritingTrial(
        domain=domain,
        model=model_choice(model, adapter, size, device, dtype, seed),
        plans=plans,
        repeats=repeats,
        seed=seed,
    )
    return measure_latency(trial)


@measures(app, "chat")
def bench_chat(
    domain: DomainName = "shopping",
    url: Annotated[
        str | None,
        Option(
            help="An OpenAI-compatible server's API; by default one with a small random model.",
            metavar="URL",
        ),
    ] = None,
    model: Annotated[
        str | None, Option(help="With --url, what it calls its model.", metavar="NAME")
    ] = None,
    queries: Annotated[int, Option(min=1, help="Queries to plan for.")] = 20,
    tokens: Annotated[
        int | None, Option(min=1, help="Most tokens of an answer; 64 for the random model.")
    ] = None,
    seconds: Annotated[float, Option(min=0.1, help="Deadline of a plan.")] = 30.0,
) -> Report:
    """Plan by a chat model over HTTP, beside the case planner: calls, tokens, time and plans.

    A server that needs a key reads it from OPENAI_API_KEY.
    """
    from casewright.bench.chat import measure_chat

    return measure_chat(domain, queries, url=url, model=model, tokens=tokens, seconds=seconds)


@measures(app, "reaper")
def bench_reaper(
    table: Annotated[
        list[str] | None, Option(help="1, 2 or 3; repeatable, all by default.")
    ] = None,
    work: WorkFolder = None,
    steps: Annotated[
        int | None, Option(min=1, help="Steps of each training; the recipe's by default.")
    ] = None,
    planner: Annotated[
        Path | None, Option(help="Table 1's planner; the shipped one by default.", metavar="FOLDER")
    ] = None,
    instructions: Annotated[
        Path | None,
        Option(help="Generic instructions, for the rows with a share of them.", metavar="FOLDER"),
    ] = None,
    recipe: Annotated[
        str, Option(help="Of the rows' trainings: a TOML file, or one that ships.")
    ] = "reaper",
    limit: Annotated[int, Option(min=1, help="Most questions of each test set.")] = 100,
    seed: Seed = 0,
) -> Report:
    """Print REAPER's tables at a small model's size: a row of 2 and 3 is a training.

    Hours the first time; --table and --steps shorten it. The same command continues a stopped run.
    """
    from casewright.bench.reaper import TABLES, ReaperTrial, measure_reaper

    trial = ReaperTrial(
        tables=tuple(dict.fromkeys(table or TABLES)),
        recipe=recipe,
        steps=steps,
        planner=planner,
        instructions=instructions,
        limit=limit,
        seed=seed,
        **({} if work is None else {"folder": work}),
    )
    try:
        return measure_reaper(trial)
    except KeyboardInterrupt:
        echo("Stopped. The same command goes on.", err=True)
        raise


@measures(app, "small-talk", plots=False)
def bench_small_talk(
    limit: Annotated[int, Option(min=1, help="Most messages of each of the two classes.")] = 100,
    model: Annotated[
        bool, Option("--model/--no-model", help="Also ask the packaged language model.")
    ] = True,
    seed: Seed = 0,
) -> Report:
    """Plan for REAPER's second class without evidence, human_small_talk, learned from examples."""
    from casewright.bench.small_talk import measure_small_talk

    return measure_small_talk(limit, seed, model=model)
