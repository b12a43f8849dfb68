"""Commands of `casewright bench` that measure the quality of planners."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer

from casewright.serve.cli.bench import options
from casewright.serve.cli.bench.report import report_command
from casewright.serve.cli.options import Device, DomainName, DType, Examples, PlannerName

if TYPE_CHECKING:
    from casewright.bench.report import Report

app = Typer(add_completion=False)


@report_command(app, "planner")
def bench_planner(
    domain: DomainName = "shopping",
    planner: PlannerName = "case",
    folds: Annotated[int, Option(min=2, help="Folds of the cross-validation.")] = 3,
    curve: Annotated[
        bool, Option("--curve", help="Also train on fewer queries, for a learning curve.")
    ] = False,
) -> Report:
    """Score a planner on annotated queries by cross-validation; similar queries share a fold.

    A planner with a reader is trained anew for each fold, in some ten minutes on two cores.
    """
    from casewright.bench.planner import measure_planner

    return measure_planner(domain, planner, folds, curve=curve)


@report_command(app, "frozen", plots=False)
def bench_frozen(
    domain: DomainName = "shopping",
    guests: Annotated[int, Option(min=0, help="Number of messages about added tools.")] = 0,
    seed: options.Seed = 0,
) -> Report:
    """Score the shipped planners on the domain's held-out test queries."""
    from casewright.bench.frozen import measure_frozen

    return measure_frozen(domain, guests, seed)


@report_command(app, "conversations", plots=False)
def bench_conversations(domain: DomainName = "shopping") -> Report:
    """Score shipped planners on follow-ups with their own history, none, or an unrelated one."""
    from casewright.bench.conversations import measure_conversations

    return measure_conversations(domain)


@report_command(app, "plan-cache", plots=False)
def bench_plan_cache(
    domain: DomainName = "shopping",
    questions: Annotated[int, Option(min=1, help="Number of questions.")] = 2000,
    seed: options.Seed = 0,
) -> Report:
    """Reuse the plans of retained answers, and count hits, wrong reuse, saved time and tokens."""
    from casewright.bench.plan_cache import measure_plan_cache
    from casewright.serve.cli.bench.service import RetainedAnswers

    return measure_plan_cache(domain, questions, seed, RetainedAnswers)


@report_command(app, "evidence", plots=False)
def bench_evidence(domain: DomainName = "shopping") -> Report:
    """Run the gold plans of annotated queries, and count the steps that find nothing."""
    from casewright.bench.evidence import measure_evidence

    return measure_evidence(domain)


@report_command(app, "unseen")
def bench_unseen(
    planner: Annotated[
        list[str] | None,
        Option(
            help="mistral (default), smollm2 (its base), local:FOLDER, parser or provider:model; "
            "repeatable: the others are compared with the first."
        ),
    ] = None,
    split: options.SplitName = "measuring",
    cases: Annotated[int, Option(min=0, help="Number of plan cases of each toolbox.")] = 0,
    limit: options.MessageLimit = None,
    data: Annotated[Path | None, Option(help="A folder with sealtools and bfcl.")] = None,
    base: Annotated[bool, Option("--base/--no-base", help="Also measure the untuned base.")] = True,
    examples: Examples = None,
    device: Device = None,
    dtype: DType = None,
    seed: options.Seed = 0,
) -> Report:
    """Plan for toolboxes that no training has seen; count right tools and right plans.

    Controls are the plan parser with the same cases, the untuned base and a fallback plan.
    """
    from casewright.bench.unseen import UnseenTrial, measure_unseen
    from casewright.planner.named import ModelSettings
    from casewright.planner.shipped import SHIPPED

    planners, corpus_split = planner or [SHIPPED], options.read_split(split)
    settings = ModelSettings(device=device, dtype=dtype, examples=examples)
    trial = UnseenTrial(planners, corpus_split, cases, limit, data, base, settings, seed)
    return measure_unseen(trial)


@report_command(app, "own-tools", plots=False)
def bench_own_tools(
    data: Annotated[
        Path | None, Option(help="Folder of learn.jsonl, test.jsonl and tools.py; tools.py is run.")
    ] = None,
    planner: Annotated[list[str] | None, Option(help="See bench unseen; default: parser.")] = None,
    cases: Annotated[str, Option(help="Numbers of plan cases to compare.")] = "0,5,20,60",
    seeds: Annotated[int, Option(min=1, help="Number of random choices of the cases.")] = 5,
    corpus: Annotated[bool, Option("--corpus/--no-corpus", help="Also measure the corpus.")] = True,
    split: options.SplitName = "measuring",
    limit: options.MessageLimit = None,
    examples: Examples = None,
    device: Device = None,
    dtype: DType = None,
) -> Report:
    """Plan for tools of your own with more and more plan cases; each class has its share of cases.

    Controls are the plan parser and a fallback plan.
    """
    from casewright.bench.own_tools import OwnToolsTrial, measure_own_tools
    from casewright.planner.named import PARSER, ModelSettings

    # An invalid split is an error without the corpus too.
    checked_split = options.read_split(split)
    corpus_split = checked_split if corpus else None
    planners, counts = planner or [PARSER], options.read_numbers("--cases", cases)
    settings = ModelSettings(device=device, dtype=dtype, examples=examples)
    trial = OwnToolsTrial(planners, data, counts, seeds, corpus_split, limit, settings)
    return measure_own_tools(trial)


@report_command(app, "narrowing", plots=False)
def bench_narrowing(
    joins: Annotated[str, Option(help="Numbers of toolboxes to join.")] = "12,32,64,250",
    planner: Annotated[str, Option(help="The planner; see bench unseen.")] = "parser",
    split: options.SplitName = "validation",
    cases: Annotated[int, Option(min=0, help="Number of plan cases of each toolbox.")] = 0,
    messages: Annotated[int | None, Option(min=1, help="Messages of each toolbox to plan.")] = None,
    first: Annotated[int, Option(min=0, help="Also time a first plan with this many tools.")] = 0,
    seed: options.Seed = 0,
) -> Report:
    """Join toolboxes of the corpus, and plan with the 64 tools that narrowing keeps."""
    from casewright.bench.narrowing import measure_narrowing

    return measure_narrowing(
        options.read_numbers("--joins", joins, minimum=1),
        planner=planner,
        split=options.read_split(split),
        cases=cases,
        messages=messages,
        first_plan_tools=first,
        seed=seed,
    )


@report_command(app, "replan", plots=False)
def bench_replan(
    domain: DomainName = "shopping",
    seeds: Annotated[int, Option(min=1, help="Number of random choices of the tool.")] = 3,
) -> Report:
    """Break a tool of each plan, and count the right answers with and without replanning."""
    from casewright.bench.replan import measure_replan

    return measure_replan(domain, seeds)
