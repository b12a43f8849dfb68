"""Commands of `casewright bench` that measure stores, the graph and the service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, Typer

from casewright.serve.cli.bench.options import read_numbers
from casewright.serve.cli.bench.report import report_command
from casewright.serve.cli.options import DomainName

if TYPE_CHECKING:
    from casewright.bench.report import Report

app = Typer(add_completion=False)


@report_command(app, "executor")
def bench_executor(
    dags: Annotated[int, Option(min=1, help="Number of random plans.")] = 200,
    seed: Annotated[int, Option(help="The seed of the random plans.")] = 0,
) -> Report:
    """Compare the time of random plans with their critical path and with LangGraph's supersteps."""
    from casewright.bench.executor import measure_executor

    return measure_executor(dags, seed)


@report_command(app, "answer")
def bench_answer(
    domain: DomainName = "shopping",
    queries: Annotated[int, Option(min=1, help="Annotated queries to answer.")] = 200,
) -> Report:
    """Time whole answers, in a running process and with the start of the command line."""
    from casewright.bench.answer import measure_answer

    return measure_answer(domain, queries)


@report_command(app, "index", plots=False)
def bench_index(source: Annotated[Path, Argument(help="A folder with source code.")]) -> Report:
    """Time the indexing of a source tree by the packaged encoder, in float32 and in int8."""
    from casewright.bench.index import measure_index

    return measure_index(source)


@report_command(app, "stores")
def bench_stores(
    sizes: Annotated[str, Option(help="Numbers of cases, at least 100.")] = "1000,10000,100000",
    queries: Annotated[int, Option(min=4, help="Queries for each size.")] = 48,
) -> Report:
    """Compare the case store with merged searches, Qdrant's formula and cbrkit.

    Some six minutes on two cores, and up to 4 GB of memory, at the default sizes.
    """
    from casewright.bench.stores.measure import measure_stores

    return measure_stores(read_numbers("--sizes", sizes), queries)


@report_command(app, "selection")
def bench_selection(
    domain: DomainName = "shopping",
    sizes: Annotated[str, Option(help="Sizes, each as candidates:picks.")] = "1000:50,10000:100",
    queries: Annotated[int | None, Option(min=1, help="Annotated queries to select for.")] = None,
    repeats: Annotated[int, Option(min=1, help="Timings of each selection.")] = 9,
    seed: Annotated[int, Option(help="The seed of the candidates.")] = 0,
) -> Report:
    """Time selections of cases, also naive ones and LangChain's; count selections proven exact."""
    from casewright.bench.selection import measure_selection, read_sizes

    return measure_selection(domain, read_sizes(sizes), queries, repeats, seed)


@report_command(app, "serve")
def bench_serve(
    domain: DomainName = "shopping",
    questions: Annotated[int, Option(min=32, help="Questions for 1, 8 and 32 clients.")] = 400,
    requests: Annotated[int, Option(min=0, help="Requests of the memory test; 0: no test.")] = 5000,
    seed: Annotated[int, Option(help="The seed for the choice of questions.")] = 0,
) -> Report:
    """Compare the times of the service over HTTP and of the bare graph; measure service memory.

    Some five minutes on two cores.
    """
    from casewright.bench.service import measure_service
    from casewright.serve.session.session import open_session

    return measure_service(domain, questions, requests, open_session, seed)
