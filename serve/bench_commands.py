"""`casewright bench …`: the measurements, as commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from casewright.errors import InputError
from casewright.serve.bench_backgammon_command import register as register_backgammon
from casewright.serve.bench_conversations_command import register as register_conversations
from casewright.serve.bench_math24_command import register as register_math24
from casewright.serve.bench_truthfulqa_command import register as register_truthfulqa
from casewright.serve.options import (
    Adapter,
    AsJson,
    Device,
    DomainName,
    DType,
    GeneratorName,
    LocalModel,
    ModelSize,
    PlanLengths,
    PlannerName,
    Plot,
    PromptLengths,
)

bench = typer.Typer(help="Measure, side by side in one run.")
register_truthfulqa(bench)
register_math24(bench)
register_backgammon(bench)
register_conversations(bench)


@bench.command("planner")
def bench_planner(
    domain: DomainName = "shopping",
    planner: PlannerName = "case",
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 3,
    curve: Annotated[
        bool, typer.Option("--curve", help="Train on ever more queries too; --plot draws it.")
    ] = False,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Score a planner on annotated queries, by cross-validation in groups.

    A planner with a reader is trained anew for every fold: some ten minutes each on two cores.
    """
    from casewright.bench.planner import measure_planner

    measure_planner(domain, planner, folds, curve=curve).show(as_json=as_json, plot=plot)


@bench.command("frozen")
def bench_frozen(domain: DomainName = "shopping", as_json: AsJson = False) -> None:
    """Score the planners as they are shipped on queries that are for measuring only."""
    from casewright.bench.frozen import measure_frozen

    measure_frozen(domain).show(as_json=as_json, plot=None)


@bench.command("decoding")
def bench_decoding(
    domain: DomainName = "shopping",
    model: LocalModel = None,
    adapter: Adapter = None,
    size: ModelSize = "100m",
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
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Write the same plans by transformers' generate, by its masked form and by the decoder.

    Some twenty minutes on two cores with the default size.
    """
    from casewright.bench.decoding.measure import DecodingTrial, measure_decoding
    from casewright.bench.decoding.models import ModelChoice
    from casewright.bench.decoding.tasks import read_range, read_shape

    trial = DecodingTrial(
        domain=domain,
        model=ModelChoice(model, adapter, size, device, dtype, seed),
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
    measure_decoding(trial).show(as_json=as_json, plot=plot)


@bench.command("latency")
def bench_latency(
    domain: DomainName = "shopping",
    model: LocalModel = None,
    adapter: Adapter = None,
    size: ModelSize = "100m",
    device: Device = None,
    dtype: DType = None,
    plans: Annotated[
        int, typer.Option(min=1, help="Questions for each number of steps, one to four.")
    ] = 10,
    repeats: Annotated[int, typer.Option(min=1, help="How often each is asked.")] = 1,
    prompt_tokens: PromptLengths = None,
    plan_tokens: PlanLengths = None,
    seed: Annotated[int, typer.Option(help="Draws the questions, and random weights.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Plan in one call and by an agent that is asked for one step at a time, with one model.

    Some twenty minutes on two cores with the default size.
    """
    from casewright.bench.decoding.models import ModelChoice
    from casewright.bench.decoding.tasks import read_range, read_shape
    from casewright.bench.latency.measure import LatencyTrial, measure_latency

    trial = LatencyTrial(
        domain=domain,
        model=ModelChoice(model, adapter, size, device, dtype, seed),
        plans=plans,
        repeats=repeats,
        shape=read_shape(prompt_tokens),
        plan_tokens=read_range(plan_tokens),
        seed=seed,
    )
    measure_latency(trial).show(as_json=as_json, plot=plot)


@bench.command("chat")
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
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Plan by a chat model over HTTP, beside the case planner: calls, tokens, time, what came.

    A server that needs a key reads it from OPENAI_API_KEY.
    """
    from casewright.bench.chat.measure import measure_chat

    report = measure_chat(domain, queries, url=url, model=model, tokens=tokens, seconds=seconds)
    report.show(as_json=as_json, plot=plot)


@bench.command("executor")
def bench_executor(
    dags: Annotated[int, typer.Option(min=1, help="Random plans.")] = 200,
    seed: Annotated[int, typer.Option(help="Of the random plans.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Time random plans against their critical path, and against LangGraph Send waves."""
    from casewright.bench.executor import measure_executor

    measure_executor(dags, seed).show(as_json=as_json, plot=plot)


@bench.command("answer")
def bench_answer(
    domain: DomainName = "shopping",
    queries: Annotated[int, typer.Option(min=1, help="Annotated queries to answer.")] = 200,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Time whole answers, warm in process and from a cold start of the command line."""
    from casewright.bench.answer import measure_answer

    measure_answer(domain, queries).show(as_json=as_json, plot=plot)


@bench.command("evidence")
def bench_evidence(domain: DomainName = "shopping", as_json: AsJson = False) -> None:
    """Run the annotated queries' own plans, and count the steps that find nothing."""
    from casewright.bench.evidence import measure_evidence

    measure_evidence(domain).show(as_json=as_json, plot=None)


@bench.command("legal")
def bench_legal(
    data: Annotated[
        Path,
        typer.Option(
            help="A folder with ALQA's qa.jsonl and pairs.jsonl, or with the multi-hop sets; or "
            "the word shipped: the domain's own cases."
        ),
    ] = Path("shipped"),
    only: Annotated[str | None, typer.Option("--set", help="Only the set of this name.")] = None,
    encoder: Annotated[
        str | None,
        typer.Option(help="A sentence-transformers model's name or folder; else the packaged one."),
    ] = None,
    cue: Annotated[
        str | None, typer.Option(help="Also measure this text before queries, and none.")
    ] = None,
    answers: Annotated[
        bool, typer.Option("--answers", help="Measure answers in place of retrieval.")
    ] = False,
    generator: GeneratorName = "extractive",
    limit: Annotated[
        int | None, typer.Option(min=4, help="At most so many questions of each set.")
    ] = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Score retrieval for questions with two parent cases, or with --answers the answers.

    The first time, every case is encoded: some minutes for the three multi-hop sets.
    """
    from casewright.bench.legal.data import SHIPPED
    from casewright.stores.encoders.sources import named_encoder

    if (cue is not None) if answers else (generator != "extractive"):
        raise InputError("--generator goes with --answers; --cue goes without.")
    place = None if str(data) == SHIPPED else data
    if answers:
        from casewright.bench.legal.answers import measure_answers
        from casewright.planner import chat_model
        from casewright.serve.session import EXTRACTIVE, check_generator

        check_generator(generator)
        model = None if generator == EXTRACTIVE else chat_model(generator)
        report = measure_answers(place, named_encoder(encoder), model, only=only, limit=limit)
    else:
        from casewright.bench.legal.protocol import measure_legal

        report = measure_legal(place, named_encoder(encoder), only=only, cue=cue, limit=limit)
    report.show(as_json=as_json, plot=plot)


@bench.command("legal-pairs")
def bench_legal_pairs(
    output: Annotated[
        Path, typer.Option("--output", help="The file to write: pairs.jsonl beside qa.jsonl.")
    ],
    data: Annotated[
        str,
        typer.Option(
            help="ALQA's qa.jsonl, its name on Hugging Face, or the word shipped: the domain's "
            "own cases.",
            metavar="FILE",
        ),
    ] = "shipped",
    model: Annotated[
        str | None,
        typer.Option(help="The chat model that writes, as provider:model.", metavar="NAME"),
    ] = None,
    pairs: Annotated[int, typer.Option(min=1, help="At most so many pairs of cases.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw of the pairs.")] = 0,
    extractor: Annotated[
        str,
        typer.Option(
            help="Who extracts entities: offline, or a chat model as provider:model.",
            metavar="NAME",
        ),
    ] = "offline",
    as_json: AsJson = False,
) -> None:
    """Have a chat model write the questions of two cases each that bench legal reads.

    A reply that holds no question with its answer is skipped and counted.
    """
    from casewright.bench.legal.pair_writing import check_pairs_output, write_pairs
    from casewright.domains.legal.chat_reading import OFFLINE, check_extractor
    from casewright.planner import chat_model
    from casewright.serve.output import print_json, print_table

    if model is None:
        raise InputError(
            "Questions are written by a chat model. Give --model provider:model, for example "
            "openai:gpt-4o-mini."
        )
    check_extractor(extractor, "--extractor")
    check_pairs_output(output, data)
    writer = chat_model(model)
    reader = None if extractor == OFFLINE else chat_model(extractor)
    made = write_pairs(data, output, writer, pairs=pairs, seed=seed, extractor=reader).to_json()
    if as_json:
        print_json(made)
        return
    skipped = [[f"skipped: {why}", count] for why, count in made.pop("skipped").items()]
    print_table(["pairs of cases", ""], [*map(list, made.items()), *skipped])


@bench.command("stores")
def bench_stores(
    sizes: Annotated[
        str, typer.Option(help="How many cases, each at least 100.", metavar="N,N,…")
    ] = "1000,10000,100000",
    queries: Annotated[int, typer.Option(min=4, help="Queries for each size.")] = 48,
    engine: Annotated[
        str | None,
        typer.Option(help="edge or local; by default edge, and local up to 10,000 cases."),
    ] = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Compare the case store with searches merged in Python, Qdrant's formula and cbrkit.

    Some six minutes on two cores, and up to 4 GB of memory, at the default sizes.
    """
    from casewright.bench.stores.measure import measure_stores, sizes_of

    measure_stores(sizes_of(sizes), queries, engine).show(as_json=as_json, plot=plot)


@bench.command("feedback")
def bench_feedback(
    data: Annotated[
        Path | None,
        typer.Option(
            help="A folder with the multi-hop sets, and scifact; without one, code alone."
        ),
    ] = None,
    only: Annotated[str | None, typer.Option("--set", help="Only the set of this name.")] = None,
    encoder: Annotated[
        str | None,
        typer.Option(help="A sentence-transformers model's name or folder; else the packaged one."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=4, help="At most so many questions of each set.")
    ] = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Compare relevance feedback with one search that judges as many, and with the post's loop.

    All sets take some twenty minutes, the first time ten more to encode their cases; --set and
    --limit shorten it.
    """
    from casewright.bench.feedback.measure import measure_feedback
    from casewright.stores.encoders.sources import named_encoder

    report = measure_feedback(data, named_encoder(encoder), only=only, limit=limit)
    report.show(as_json=as_json, plot=plot)


@bench.command("selection")
def bench_selection(
    domain: DomainName = "shopping",
    sizes: Annotated[str, typer.Option(help="Candidates and picks of each.")] = "1000:50,10000:100",
    queries: Annotated[
        int | None, typer.Option(min=1, help="Annotated queries to certify over; all by default.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Timings of each selection.")] = 9,
    seed: Annotated[int, typer.Option(help="Of the candidates.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Time selection beside LangChain's and a naive one, and count what is proved exact."""
    from casewright.bench.selection import measure_selection, read_sizes

    report = measure_selection(domain, read_sizes(sizes), queries, repeats, seed)
    report.show(as_json=as_json, plot=plot)


@bench.command("training")
def bench_training(
    size: ModelSize = "100m",
    recipe: Annotated[
        str, typer.Option(help="A recipe with an adapter: a TOML file, or one that ships.")
    ] = "mistral-7b-80gb",
    examples: Annotated[int, typer.Option(min=1, help="Examples, trained on once.")] = 32,
    repeats: Annotated[int, typer.Option(min=1, help="How often each system trains.")] = 1,
    device: Device = None,
    seed: Annotated[int, typer.Option(help="Draws examples and weights.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train an adapter by a recipe and by TRL's defaults: tokens a second, and memory."""
    from casewright.bench.training.measure import TrainingTrial, measure_training

    trial = TrainingTrial(size, recipe, examples, repeats, device, seed)
    measure_training(trial).show(as_json=as_json, plot=None)


@bench.command("reaper")
def bench_reaper(
    table: Annotated[
        list[str] | None,
        typer.Option(help="1, 2, 3 or studies; several may be given, all by default."),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            help="Keeps trainings and figures, so that the same command goes on where it was "
            "stopped; in the cache folder by default.",
            metavar="FOLDER",
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps of each training; the recipe's by default.")
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            help="A model that trainings start from, not trained with these tools; else a new one.",
            metavar="FOLDER",
        ),
    ] = None,
    planner: Annotated[
        Path | None,
        typer.Option(help="Table 1's planner; by default the one that ships.", metavar="FOLDER"),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(help="The model that it was before the LoRA stage.", metavar="FOLDER"),
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
    seed: Annotated[int, typer.Option(min=0, help="Of random weights and test sets.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Print REAPER's tables at a small model's size: every row is a training, asked in four ways.

    Hours the first time; --table and --steps shorten it. Interrupted, the same command goes on.
    """
    from casewright.bench.reaper.measure import measure_reaper
    from casewright.bench.reaper.trial import TABLES, ReaperTrial, default_folder

    trial = ReaperTrial(
        tables=tuple(dict.fromkeys(table or TABLES)),
        folder=work or default_folder(),
        recipe=recipe,
        steps=steps,
        start=start,
        planner=planner,
        base=base,
        instructions=instructions,
        tool=tool,
        limit=limit,
        jobs=jobs,
        seed=seed,
    )
    try:
        report = measure_reaper(trial)
    except KeyboardInterrupt:
        typer.echo("Stopped. The same command goes on.", err=True)
        raise
    report.show(as_json=as_json, plot=plot)
