"""The response times of the service and of a graph without a service, and the service's memory."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np

from casewright.bench.answer import STAGES
from casewright.bench.harness import first_scope, p50, resident_bytes, serving
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.graph import RunContext
from casewright.graph.named import EXTRACTIVE
from casewright.stores.progress import progress_bar

#: The numbers of concurrent clients.
CLIENT_COUNTS = (1, 8, 32)
MAX_CLIENTS = max(CLIENT_COUNTS)
#: Share of the requests that come before memory is first measured; by then, the caches are full.
WARM_UP_SHARE = 0.1
#: Asks a question; returns the milliseconds of the graph's stages, or ``None`` on an error.
Ask = Callable[[str], Awaitable[float | None]]
#: Opens a session by the name of its domain.
OpenSession = Callable[[str], Any]
NOTES = (
    "The clients and the bare graph run in this process, the service in another one on the same "
    "cores. All systems get the questions in the same order. cpu_ms: the CPU time per answer of "
    "the process that answers. outside_ms: the median time of an answer outside the graph's "
    "stages: in LangGraph, and for the service also in HTTP and the queue. service: eight threads "
    "plan, and concurrent questions share runs of the encoder. service, own runs: without these "
    "shared runs (--own-runs). service, 1 thread: one thread plans (--compute-threads 1).",
)
#: The compared systems: the graph without a service, and services with their options.
BARE, SERVICE = "bare graph", "service"
OWN_RUNS, ONE_THREAD = "service, own runs", "service, 1 thread"
SERVICES = {OWN_RUNS: ("--own-runs",), ONE_THREAD: ("--compute-threads", "1"), SERVICE: ()}


class Load(NamedTuple):
    """The measurements of a period in which clients ask questions."""

    milliseconds: Sequence[float]  # response time of each answer
    seconds: float  # duration of the load
    error_count: int
    cpu_seconds: float = 0.0  # CPU time of the process that answers
    stages_ms: Sequence[float] = ()  # for each answer, the milliseconds in the graph's stages

    @property
    def per_second(self) -> float:
        """Answers per second."""
        return len(self.milliseconds) / self.seconds

    @property
    def cpu_milliseconds(self) -> float:
        """CPU milliseconds per answer."""
        return self.cpu_seconds * 1000 / max(1, len(self.milliseconds))

    def percentile(self, percent: float) -> float:
        """Return a percentile of the response times; 0 without answers."""
        return float(np.percentile(self.milliseconds, percent)) if self.milliseconds else 0.0

    @property
    def outside_milliseconds(self) -> float:
        """Median milliseconds of an answer outside the graph's stages; 0 without ``stages_ms``."""
        return p50(np.subtract(self.milliseconds, self.stages_ms)) if self.stages_ms else 0.0


async def measure_load(
    ask: Ask,
    questions: Sequence[str],
    clients: int,
    advance: Callable[[int], None] = lambda number: None,
    cpu: Callable[[], float] = time.process_time,
) -> Load:
    """Let ``clients`` ask questions at once; ``cpu`` returns the CPU seconds of the answerer."""
    remaining = iter(questions)
    times: list[float] = []
    stages: list[float] = []
    errors = 0

    async def client() -> None:
        nonlocal errors
        for question in remaining:
            started = time.perf_counter()
            stages_ms = await ask(question)
            if stages_ms is None:
                errors += 1
            else:
                times.append((time.perf_counter() - started) * 1000)
                stages.append(stages_ms)
            advance(1)

    cpu_before, started = cpu(), time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return Load(times, time.perf_counter() - started, errors, cpu() - cpu_before, stages)


def _cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process so far; 0 on a system without ``/proc``."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    # User and system time, fields 14 and 15. Field 2, in brackets, may hold spaces.
    fields = line.rpartition(")")[2].split()[11:13]
    return sum(map(int, fields)) / os.sysconf("SC_CLK_TCK")


def measure_service(
    domain: str, question_count: int, request_count: int, open_session: OpenSession, seed: int = 0
) -> Report:
    """Measure the response times for each number of clients, and the service's memory.

    Each number of clients asks ``question_count`` questions. Then memory is measured during
    ``request_count`` more requests. ``open_session`` opens the session with the graph in this
    process. Raise ``InputError`` if the domain has no annotated queries.
    """
    from casewright.domains import find_domain

    known_queries = [query.query for query in find_domain(domain).queries()]
    if not known_queries:
        raise InputError(f"The domain {domain!r} has no annotated queries. Choose shopping.")
    random.Random(seed).shuffle(known_queries)
    questions = list(islice(cycle(known_queries), question_count))
    loads_by_system = {BARE: asyncio.run(_load_graph(open_session(domain), questions))}
    memory_figures: dict[str, float] = {}
    for system, options in SERVICES.items():
        with serving(domain, *options) as (url, pid):
            count = request_count if system == SERVICE else 0
            loads, figures = asyncio.run(_load_service(url, pid, questions, known_queries, count))
            loads_by_system[system] = loads
            memory_figures |= figures
    rows = [
        {"way": system, "clients": clients, **_load_cells(loads[clients])}
        for clients in CLIENT_COUNTS
        for system, loads in loads_by_system.items()
    ]
    counts = {"questions": question_count, "requests": request_count}
    settings = {"domain": domain, **counts, "seed": seed}
    figures = {**_figures(loads_by_system), **memory_figures}
    draw = partial(_draw, loads_by_system=loads_by_system)
    return Report("serve", settings, figures, rows, NOTES, draw)


async def _load_graph(session: Any, questions: Sequence[str]) -> dict[int, Load]:
    try:
        graph = session.graph(EXTRACTIVE)
        context = RunContext(scope=first_scope(session.domain))

        async def ask(question: str) -> float | None:
            state = await graph.ainvoke({"question": question}, context=context)
            return _stages_ms(state["answer"])

        return await _load_by_clients(ask, questions, "The bare graph", time.process_time)
    finally:
        session.close()


async def _load_by_clients(
    ask: Ask, questions: Sequence[str], label: str, cpu: Callable[[], float]
) -> dict[int, Load]:
    # These untimed questions load the models, and fill the cache of vectors.
    await measure_load(ask, questions, MAX_CLIENTS)
    with progress_bar(label, len(CLIENT_COUNTS) * len(questions), show=None) as advance:
        return {n: await measure_load(ask, questions, n, advance, cpu) for n in CLIENT_COUNTS}


async def _load_service(
    url: str, pid: int, questions: Sequence[str], known: Sequence[str], request_count: int
) -> tuple[dict[int, Load], dict[str, float]]:
    """Return a ``Load`` by number of clients, and figures of the memory during further requests."""
    async with _ask_over_http(url) as ask:
        loads = await _load_by_clients(ask, questions, "The service", partial(_cpu_seconds, pid))
        return loads, await _memory(ask, pid, known, request_count) if request_count else {}


async def _memory(ask: Ask, pid: int, known: Sequence[str], request_count: int) -> dict[str, float]:
    warm_up_count = max(1, int(request_count * WARM_UP_SHARE))
    middle_count = warm_up_count + (request_count - warm_up_count) // 2
    questions = cycle(known)
    figures: dict[str, float] = {}
    errors = 0
    with progress_bar("Watching memory", request_count, show=None) as advance:
        for start, end in pairwise((0, warm_up_count, middle_count, request_count)):
            batch = list(islice(questions, end - start))
            errors += (await measure_load(ask, batch, MAX_CLIENTS, advance)).error_count
            memory_mb = (resident_bytes(pid) or 0) / 2**20
            figures[f"service_memory_mb_after_{end}_requests"] = memory_mb
    return {**figures, f"errors_in_{request_count}_requests": float(errors)}


@asynccontextmanager
async def _ask_over_http(url: str) -> AsyncIterator[Ask]:
    limits = httpx.Limits(max_connections=MAX_CLIENTS, max_keepalive_connections=MAX_CLIENTS)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client:

        async def ask(question: str) -> float | None:
            try:
                reply = await client.post("/ask", json={"question": question})
            except httpx.TransportError:
                return None
            return _stages_ms(reply.json()) if reply.status_code == 200 else None

        yield ask


def _stages_ms(answer: Mapping[str, Any]) -> float | None:
    """Return the milliseconds of an answer's stages; ``None`` for an answer without text."""
    if not answer["text"]:
        return None
    return float(sum(answer["usage"][f"{stage}_ms"] for stage in STAGES))


def _load_cells(load: Load) -> dict[str, Any]:
    return {
        "per_second": load.per_second,
        **{f"p{percent}_ms": load.percentile(percent) for percent in (50, 95, 99)},
        "outside_ms": load.outside_milliseconds,
        "cpu_ms": load.cpu_milliseconds,
        "errors": load.error_count,
    }


def _figures(loads: Mapping[str, dict[int, Load]]) -> dict[str, float]:
    bare_loads, service_loads = loads[BARE], loads[SERVICE]
    figures: dict[str, float] = {}
    for clients in CLIENT_COUNTS:
        service, suffix = service_loads[clients], f"{clients}_clients"
        figures[f"service_requests_per_second_{suffix}"] = service.per_second
        figures[f"service_ms_p95_{suffix}"] = service.percentile(95)
        others = {"bare": bare_loads, "own_runs": loads[OWN_RUNS], "1_thread": loads[ONE_THREAD]}
        for name, other_loads in others.items():
            if other_loads[clients].per_second:
                ratio = service.per_second / other_loads[clients].per_second
                figures[f"ratio_service_over_{name}_requests_per_second_{suffix}"] = ratio
    service, bare = service_loads[1], bare_loads[1]
    return {
        **figures,
        "overhead_cpu_ms_1_client": service.cpu_milliseconds - bare.cpu_milliseconds,
        "overhead_outside_ms_1_client": service.outside_milliseconds - bare.outside_milliseconds,
        "overhead_ms_p50_1_client": service.percentile(50) - bare.percentile(50),
        f"errors_{MAX_CLIENTS}_clients": float(service_loads[MAX_CLIENTS].error_count),
    }


def _draw(axes: Any, loads_by_system: Mapping[str, dict[int, Load]]) -> None:
    from matplotlib.ticker import ScalarFormatter

    for system, marker in ((BARE, "o"), (SERVICE, "s")):
        for percent, line in ((50, "-"), (95, "--")):
            values = [loads_by_system[system][n].percentile(percent) for n in CLIENT_COUNTS]
            axes.plot(CLIENT_COUNTS, values, line, marker=marker, label=f"{system}, p{percent}")
    axes.set(xscale="log", yscale="log", xlabel="clients at once", ylabel="milliseconds an answer")
    axes.set(xticks=CLIENT_COUNTS, title="An answer over HTTP, and by the graph in one process")
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.legend()
