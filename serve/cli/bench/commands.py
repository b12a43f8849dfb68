"""`casewright bench …`: the measurements, as commands."""

from __future__ import annotations

from typing import Annotated

import typer

from casewright.errors import InputError
from casewright.serve.cli.bench import (
    narrowing,
    own_tools,
    soak,
    studies,
    unseen,
)
from casewright.serve.cli.options import (
    Adapter,
    AsJson,
    Device,
    DomainName,
    DType,
    LocalModel,
    ModelSize,
    PlanLengths,
    PlannerName,
    Plot,
    PromptLengths,
)

app = typer.Typer(help="Measure, side by side in one run.")
for part in (unseen, studies, narrowing, soak, own_tools):
    app.add_typer(part.app)


@app.command("planner")
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


@app.command("frozen")
def bench_frozen(domain: DomainName = "shopping", as_json: AsJson = False) -> None:
    """Score the planners as they are shipped on queries that are for measuring only."""
    from casewright.bench.frozen import measure_frozen

    measure_frozen(domain).show(as_json=as_json, plot=None)


@app.command("conversations")
def bench_conversations(domain: DomainName = "shopping", as_json: AsJson = False) -> None:
    """Score the planners on follow-ups: with their history, without it, with another's."""
    from casewright.bench.conversations import measure_conversations

    measure_conversations(domain).show(as_json=as_json, plot=None)


@app.command("decoding")
def bench_decoding(
    domain: DomainName = "shopping",
    model: Annotated[
        str | None,
        typer.Option(
            help="A causal language model's name or folder, an adapter's too; by default the "
            "planner that ships.",
            metavar="NAME",
        ),
    ] = None,
    adapter: Adapter = None,
    size: Annotated[
        str | None,
        typer.Option(help="Random weights instead, of a size: tiny, 100m or 7b.", metavar="SIZE"),
    ] = None,
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

    A trained model writes its own plans too, with the case planner's as drafts and without.
    """
    from casewright.bench.decoding.measure import DecodingTrial, measure_decoding
    from casewright.bench.models import ModelChoice
    from casewright.bench.scripts import read_range, read_shape
    from casewright.planner.shipped import SHIPPED

    if model and size:
        raise InputError("--size is of random weights. Leave it out, or --model.")
    name = model if model or size else SHIPPED
    trial = DecodingTrial(
        domain=domain,
        model=ModelChoice(name, adapter, size or "100m", device, dtype, seed),
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


@app.command("latency")
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
    from casewright.bench.latency import LatencyTrial, measure_latency
    from casewright.bench.models import ModelChoice
    from casewright.bench.scripts import read_range, read_shape

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


@app.command("chat")
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
    from casewright.bench.chat import measure_chat

    report = measure_chat(domain, queries, url=url, model=model, tokens=tokens, seconds=seconds)
    report.show(as_json=as_json, plot=plot)


@app.command("executor")
def bench_executor(
    dags: Annotated[int, typer.Option(min=1, help="Random plans.")] = 200,
    seed: Annotated[int, typer.Option(help="Of the random plans.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Time random plans against their critical path, and against LangGraph Send waves."""
    from casewright.bench.executor import measure_executor

    measure_executor(dags, seed).show(as_json=as_json, plot=plot)


@app.command("answer")
def bench_answer(
    domain: DomainName = "shopping",
    queries: Annotated[int, typer.Option(min=1, help="Annotated queries to answer.")] = 200,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Time whole answers, warm in process and from a cold start of the command line."""
    from casewright.bench.answer import measure_answer

    measure_answer(domain, queries).show(as_json=as_json, plot=plot)


@app.command("evidence")
def bench_evidence(domain: DomainName = "shopping", as_json: AsJson = False) -> None:
    """Run the annotated queries' own plans, and count the steps that find nothing."""
    from casewright.bench.evidence import measure_evidence

    measure_evidence(domain).show(as_json=as_json, plot=None)


@app.command("stores")
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


@app.command("selection")
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


@app.command("training")
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
    from casewright.bench.training import TrainingTrial, measure_training

    trial = TrainingTrial(size, recipe, examples, repeats, device, seed)
    measure_training(trial).show(as_json=as_json, plot=None)


@app.command("serve")
def bench_serve(
    domain: DomainName = "shopping",
    questions: Annotated[
        int, typer.Option(min=32, help="Questions for each number of clients: 1, 8 and 32.")
    ] = 400,
    requests: Annotated[
        int, typer.Option(min=0, help="Requests that memory is watched over; 0 leaves that out.")
    ] = 5000,
    seed: Annotated[int, typer.Option(help="Of the choice of questions.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Time the service over HTTP beside the bare graph, and watch its memory.

    Some five minutes on two cores.
    """
    from casewright.bench.service import measure_service

    measure_service(domain, questions, requests, seed).show(as_json=as_json, plot=plot)
