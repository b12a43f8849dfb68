"""The service over HTTP beside the bare graph in one process, on the same questions."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import cycle, islice
from typing import Any

import httpx

from casewright.bench.report import Report
from casewright.bench.service.load import Ask, Load, load
from casewright.bench.service.served import Served, served
from casewright.errors import InputError
from casewright.stores.progress import progress_bar

CLIENTS = (1, 8, 32)
#: Of the requests that memory is watched over, those that fill caches at first.
WARM_UP = 0.1
Row = dict[str, Any]


def measure_service(domain: str, each: int, requests: int, seed: int = 0) -> Report:
    """Time questions of a domain, and watch the service's memory.

    Args:
        domain: The domain; it has annotated queries.
        each: Questions for each number of clients.
        requests: Requests over which memory is watched, at most clients; 0 leaves that out.
        seed: Of the choice of questions.

    Raises:
        InputError: The domain has no annotated queries.
    """
    from casewright.domains import find_domain

    known = [query.query for query in find_domain(domain).queries()]
    if not known:
        raise InputError(f"The domain {domain!r} has no annotated queries. Choose shopping.")
    random.Random(seed).shuffle(known)
    questions = list(islice(cycle(known), each))
    bare = asyncio.run(_bare(domain, questions))
    with served(domain) as service:
        over_http = asyncio.run(_service(service, questions))
        memory = asyncio.run(_memory(service, known, requests)) if requests else {}
    rows = [
        _row(clients, way, one)
        for clients in CLIENTS
        for way, one in (("bare graph", bare[clients]), ("service", over_http[clients]))
    ]
    return Report(
        bench="serve",
        settings={"domain": domain, "questions": each, "requests": requests, "seed": seed},
        figures={**_figures(bare, over_http), **memory},
        rows=rows,
        notes=[
            "The clients and the bare graph run in this process, the service in one of its own, on "
            "the same machine: they share its cores. Questions are asked in the same order. cpu_ms "
            "is the computing time of an answer, of the process that answers; outside_ms is the "
            "median of what an answer takes beside the stages that its usage tells: LangGraph, and "
            "of the service also HTTP and waiting for a place.",
        ],
        draw=lambda axes: _draw(axes, bare, over_http),
    )


async def _bare(domain: str, questions: Sequence[str]) -> dict[int, Load]:
    from casewright.graph import RunContext
    from casewright.serve.scopes import demo_scope
    from casewright.serve.session import EXTRACTIVE, make_generator, open_session

    session = open_session(domain)
    try:
        graph = session.graph(make_generator(EXTRACTIVE, session.encoder, session.domain))
        context = RunContext(scope=demo_scope(session.domain.scopes))

        async def ask(question: str) -> float | None:
            state = await graph.ainvoke({"question": question}, context=context)
            return _stages(state["answer"])

        return await _each(ask, questions, "The bare graph", time.process_time)
    finally:
        session.close()


async def _service(service: Served, questions: Sequence[str]) -> dict[int, Load]:
    async with _asking(service) as ask:
        return await _each(ask, questions, "The service", service.cpu_seconds)


async def _each(
    ask: Ask, questions: Sequence[str], label: str, cpu: Callable[[], float]
) -> dict[int, Load]:
    # What is done once, at the first questions, and each question's embedding, is not timed.
    await load(ask, questions, max(CLIENTS))
    found = {}
    with progress_bar(label, len(CLIENTS) * len(questions), show=None) as advance:
        for clients in CLIENTS:
            found[clients] = await load(ask, questions, clients, advance, cpu)
    return found


async def _memory(service: Served, known: Sequence[str], requests: int) -> dict[str, float]:
    """Return the service's memory before, in the middle of and after so many requests."""
    first = max(1, int(requests * WARM_UP))
    parts = (first, (requests - first) // 2, requests - first - (requests - first) // 2)
    asked = cycle(known)
    sizes: list[float] = []
    errors = 0
    with progress_bar("Watching memory", requests, show=None) as advance:
        async with _asking(service) as ask:
            for part in parts:
                done = await load(ask, list(islice(asked, part)), max(CLIENTS), advance)
                errors += done.errors
                sizes.append(service.megabytes() or 0.0)
    return {
        f"service_memory_mb_after_{first}_requests": sizes[0],
        f"service_memory_mb_after_{parts[0] + parts[1]}_requests": sizes[1],
        f"service_memory_mb_after_{requests}_requests": sizes[2],
        f"errors_in_{requests}_requests": float(errors),
    }


@asynccontextmanager
async def _asking(service: Served) -> AsyncIterator[Ask]:
    limits = httpx.Limits(max_connections=max(CLIENTS), max_keepalive_connections=max(CLIENTS))
    async with httpx.AsyncClient(base_url=service.url, timeout=120, limits=limits) as client:

        async def ask(question: str) -> float | None:
            try:
                reply = await client.post("/ask", json={"question": question})
            except httpx.TransportError:
                return None
            return _stages(reply.json()) if reply.status_code == 200 else None

        yield ask


def _stages(answer: Mapping[str, Any]) -> float | None:
    """Return how long planning, execution and wording took; ``None`` where nothing is answered."""
    if not answer["text"]:
        return None
    usage = answer["usage"]
    return float(usage["planning_ms"] + usage["execution_ms"] + usage["generation_ms"])


def _row(clients: int, way: str, one: Load) -> Row:
    return {
        "way": way,
        "clients": clients,
        "per_second": one.per_second,
        "p50_ms": one.percentile(50),
        "p95_ms": one.percentile(95),
        "p99_ms": one.percentile(99),
        "outside_ms": one.outside_milliseconds,
        "cpu_ms": one.cpu_milliseconds,
        "errors": one.errors,
    }


def _figures(bare: dict[int, Load], over_http: dict[int, Load]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for clients in CLIENTS:
        own, other = over_http[clients], bare[clients]
        figures[f"service_requests_per_second_{clients}_clients"] = own.per_second
        figures[f"service_ms_p95_{clients}_clients"] = own.percentile(95)
        figures[f"ratio_service_over_bare_requests_per_second_{clients}_clients"] = (
            own.per_second / other.per_second
        )
    figures["overhead_cpu_ms_1_client"] = over_http[1].cpu_milliseconds - bare[1].cpu_milliseconds
    figures["overhead_outside_ms_1_client"] = (
        over_http[1].outside_milliseconds - bare[1].outside_milliseconds
    )
    figures["overhead_ms_p50_1_client"] = over_http[1].percentile(50) - bare[1].percentile(50)
    figures[f"errors_{max(CLIENTS)}_clients"] = float(over_http[max(CLIENTS)].errors)
    return figures


def _draw(axes: Any, bare: dict[int, Load], over_http: dict[int, Load]) -> None:
    from matplotlib.ticker import ScalarFormatter

    for way, loads, marker in (("bare graph", bare, "o"), ("service", over_http, "s")):
        for share, line in ((50, "-"), (95, "--")):
            values = [loads[clients].percentile(share) for clients in CLIENTS]
            axes.plot(CLIENTS, values, line, marker=marker, label=f"{way}, p{share}")
    axes.set(xscale="log", yscale="log", xlabel="clients at once", ylabel="milliseconds an answer")
    axes.set_xticks(CLIENTS)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.legend()
    axes.set_title("An answer over HTTP, beside the graph in one process")
