"""`casewright bench …`: the quality of planners, as commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from casewright.serve.cli.bench.options import (
    MessageLimit,
    Seed,
    SplitName,
    read_numbers,
    read_split,
)
from casewright.serve.cli.bench.report import measures
from casewright.serve.cli.options import Device, DomainName, DType, Examples, PlannerName

if TYPE_CHECKING:
    from casewright.bench.report import Report

app = typer.Typer(add_completion=False)


@measures(app, "planner")
def bench_planner(
    domain: DomainName = "shopping",
    planner: PlannerName = "case",
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 3,
    curve: Annotated[
        bool, typer.Option("--curve", help="Train on ever more queries too; --plot draws it.")
    ] = False,
) -> Report:
    """Score a planner on annotated queries, by cross-validation in groups.

    A planner with a reader is trained anew for every fold: some ten minutes each on two cores.
    """
    from casewright.bench.planner import measure_planner

    return measure_planner(domain, planner, folds, curve=curve)


@measures(app, "frozen", plots=False)
def bench_frozen(domain: DomainName = "shopping") -> Report:
    """Score the planners as they are shipped on queries that are for measuring only."""
    from casewright.bench.frozen import measure_frozen

    return measure_frozen(domain)


@measures(app, "conversations", plots=False)
def bench_conversations(domain: DomainName = "shopping") -> Report:
    """Score the planners on follow-ups: with their history, without it, with another's."""
    from casewright.bench.conversations import measure_conversations

    return measure_conversations(domain)


@measures(app, "evidence", plots=False)
def bench_evidence(domain: DomainName = "shopping") -> Report:
    """Run the annotated queries' own plans, and count the steps that find nothing."""
    from casewright.bench.evidence import measure_evidence

    return measure_evidence(domain)


@measures(app, "unseen")
def bench_unseen(
    planner: Annotated[
        list[str] | None,
        typer.Option(
            help="mistral, local:FOLDER for another adapter or model, smollm2 for the base that is "
            "not tuned, parser, or provider:model; several are compared with the first. mistral by "
            "default.",
            metavar="NAME",
        ),
    ] = None,
    split: SplitName = "measuring",
    cases: Annotated[
        int,
        typer.Option(
            min=0, help="Annotated messages of each toolbox that planners know as plan cases."
        ),
    ] = 0,
    limit: MessageLimit = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="A folder with the folders sealtools and bfcl, to measure on, too.", metavar="DIR"
        ),
    ] = None,
    base: Annotated[
        bool, typer.Option("--base/--no-base", help="Whether the untuned base is a control.")
    ] = True,
    examples: Examples = None,
    device: Device = None,
    dtype: DType = None,
    seed: Seed = 0,
) -> Report:
    """Plan for toolboxes that nothing was trained on: right tools, whole plans, by class.

    By default from their descriptions and own examples alone. Beside the planners, the plan parser
    with the same cases, the untuned base and a fallback plan.
    """
    from casewright.bench.unseen import UnseenTrial, measure_unseen
    from casewright.planner.named import ModelSettings
    from casewright.planner.shipped import SHIPPED

    trial = UnseenTrial(
        planners=planner or [SHIPPED],
        split=read_split(split),
        cases=cases,
        limit=limit,
        data=data,
        base=base,
        settings=ModelSettings(device=device, dtype=dtype, examples=examples),
        seed=seed,
    )
    return measure_unseen(trial)


@measures(app, "own-tools", plots=False)
def bench_own_tools(
    data: Annotated[
        Path | None,
        typer.Option(
            help="A folder with tools.py (its toolbox, or a function that returns it; it is run), "
            "learn.jsonl and test.jsonl.",
            metavar="DIR",
        ),
    ] = None,
    planner: Annotated[
        list[str] | None,
        typer.Option(
            help="As for bench unseen; local:DIR for an adapter of your own. parser by default.",
            metavar="NAME",
        ),
    ] = None,
    cases: Annotated[
        str,
        typer.Option(
            help="How many annotated messages planners know, in turn; a set that has fewer leaves "
            "that number out.",
            metavar="N,N,…",
        ),
    ] = "0,5,20,60",
    seeds: Annotated[int, typer.Option(min=1, help="Draws of these messages.")] = 5,
    corpus: Annotated[
        bool,
        typer.Option(
            "--corpus/--no-corpus", help="Whether toolboxes of the corpus are asked, too."
        ),
    ] = True,
    split: SplitName = "measuring",
    limit: MessageLimit = None,
    examples: Examples = None,
    device: Device = None,
    dtype: DType = None,
) -> Report:
    """Plan for tools of your own with ever more annotated messages: right tools, whole plans.

    The messages that planners know are drawn by class, again and again. Beside the planners, the
    plan parser and a fallback plan.
    """
    from casewright.bench.own_tools import OwnToolsTrial, measure_own_tools
    from casewright.planner.named import PARSER, ModelSettings

    part = read_split(split)
    trial = OwnToolsTrial(
        planners=planner or [PARSER],
        data=data,
        cases=read_numbers("--cases", cases),
        seeds=seeds,
        split=part if corpus else None,
        limit=limit,
        settings=ModelSettings(device=device, dtype=dtype, examples=examples),
    )
    return measure_own_tools(trial)


@measures(app, "narrowing", plots=False)
def bench_narrowing(
    joins: Annotated[
        str, typer.Option(help="How many toolboxes are joined, in turn.", metavar="N,N,…")
    ] = "12,32,64,250",
    planner: Annotated[
        str, typer.Option(help="What plans with them: as for bench unseen.", metavar="NAME")
    ] = "parser",
    split: SplitName = "validation",
    cases: Annotated[
        int, typer.Option(min=0, help="Annotated messages of each of these that are known.")
    ] = 0,
    messages: Annotated[
        int | None,
        typer.Option(min=1, help="Messages of each toolbox that are planned for.", metavar="N"),
    ] = None,
    first: Annotated[
        int,
        typer.Option(
            min=0,
            help="Also time the first plan with so many tools, narrowed and not.",
            metavar="N",
        ),
    ] = 0,
    seed: Seed = 0,
) -> Report:
    """Join toolboxes of the corpus to one, and plan with the 64 tools that are kept of it."""
    from casewright.bench.narrowing import measure_narrowing

    return measure_narrowing(
        read_numbers("--joins", joins, least=1),
        planner=planner,
        split=read_split(split),
        cases=cases,
        messages=messages,
        first=first,
        seed=seed,
    )
