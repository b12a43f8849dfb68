"""`casewright bench …`: the measurements, as commands."""

from __future__ import annotations

from typing import Annotated

import typer

from casewright.serve.options import AsJson, DomainName, PlannerName, Plot

bench = typer.Typer(help="Measure, side by side in one run.")


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
