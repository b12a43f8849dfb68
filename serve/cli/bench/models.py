"""Commands of `casewright bench` that measure language models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer

from casewright.serve.cli.bench import options
from casewright.serve.cli.bench.report import report_command
from casewright.serve.cli.options import Adapter, Device, DomainName, DType

if TYPE_CHECKING:
    from casewright.bench.report import Report

app = Typer(add_completion=False)


@report_command(app, "decoding")
def bench_decoding(
    domain: DomainName = "shopping",
    model: options.WritingModel = None,
    adapter: Adapter = None,
    size: options.RandomSize = None,
    device: Device = None,
    dtype: DType = None,
    plans: Annotated[int, Option(min=1, help="Number of plans of each system.")] = 20,
    repeats: Annotated[int, Option(min=1, help="Repeats of each plan.")] = 1,
    examples: Annotated[int, Option(min=0, help="Plan cases in the compared prompts.")] = 1,
    grammars: Annotated[int, Option(min=1, help="Queries for timing the grammar alone.")] = 200,
    held_out: Annotated[int, Option(min=1, help="Queries to score a trained model on.")] = 100,
    seed: Annotated[int, Option(help="The seed of the queries and random weights.")] = 0,
) -> Report:
    """Time gold plans from transformers' generate, without and with a grammar, and from Casewright.

    A trained model also writes plans of its own, with and without the case planner's drafts.
    """
    from casewright.bench.decoding.measure import DecodingTrial, measure_decoding

    choice = options.model_choice(model, adapter, size, device, dtype, seed)
    counts = {"plans": plans, "repeats": repeats, "plan_cases": examples, "seed": seed}
    counts |= {"grammar_queries": grammars, "held_out": held_out}
    return measure_decoding(DecodingTrial(domain=domain, model=choice, **counts))


@report_command(app, "latency")
def bench_latency(
    domain: DomainName = "shopping",
    model: options.WritingModel = None,
    adapter: Adapter = None,
    size: options.RandomSize = None,
    device: Device = None,
    dtype: DType = None,
    plans: Annotated[int, Option(min=1, help="Questions for each number of steps (1 to 4).")] = 10,
    repeats: Annotated[int, Option(min=1, help="Repeats of each question.")] = 1,
    seed: Annotated[int, Option(help="The seed of the questions and random weights.")] = 0,
) -> Report:
    """Time plans from one call of a model, and from a step-by-step agent with the same model.

    Some twenty minutes on two cores.
    """
    from casewright.bench.latency import measure_latency
    from casewright.bench.models import GenerationTrial

    choice = options.model_choice(model, adapter, size, device, dtype, seed)
    trial = GenerationTrial(domain=domain, model=choice, plans=plans, repeats=repeats, seed=seed)
    return measure_latency(trial)


@report_command(app, "chat")
def bench_chat(
    domain: DomainName = "shopping",
    url: Annotated[
        str | None, Option(help="OpenAI-compatible API; default: smollm2 on this machine.")
    ] = None,
    model: Annotated[str | None, Option(help="With --url: the name of the API's model.")] = None,
    queries: Annotated[int, Option(min=1, help="Queries to plan for.")] = 20,
    tokens: Annotated[
        int | None, Option(min=1, help="Limit of tokens in an answer; default without --url: 64.")
    ] = None,
    seconds: Annotated[float, Option(min=0.1, help="Deadline of a plan.")] = 30.0,
) -> Report:
    """Let a chat model over HTTP plan, answer and judge; count calls, tokens, time and errors.

    If the API needs a key, set OPENAI_API_KEY.
    """
    from casewright.bench.chat import measure_chat

    return measure_chat(domain, queries, url=url, model=model, tokens=tokens, seconds=seconds)
