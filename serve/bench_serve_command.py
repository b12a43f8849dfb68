"""`casewright bench serve`: the service under load."""

from __future__ import annotations

from typing import Annotated

import typer

from casewright.serve.options import AsJson, DomainName, Plot


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve")(bench_serve)


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
    from casewright.bench.service.measure import measure_service

    measure_service(domain, questions, requests, seed).show(as_json=as_json, plot=plot)
