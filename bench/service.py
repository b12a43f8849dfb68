"""The service over HTTP beside the bare graph in one process: what it costs, whether it lasts."""

from __future__ import annotations

import asyncio
import os
import random
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from casewright.bench.harness import p50, running
from casewright.bench.report import Report
from casewright.errors import InputError
from casewright.graph import RunContext
from casewright.graph.named import EXTRACTIVE
from casewright.serve.session.scopes import demo_scope
from casewright.serve.session.session import open_session
from casewright.stores.progress import progress_bar

CLIENTS = (1, 8, 32)
#: Of the requests that memory is watched over, those that fill caches at first.
WARM_UP = 0.1
#: Asks one question; returns the milliseconds of the graph's stages, ``None`` without an answer.
Ask = Callable[[str], Awaitable[float | None]]


@dataclass(frozen=True, slots=True)
class Load:
    """What became of some questions.

    Attributes:
        milliseconds: Of each answer.
        seconds: Of all together.
        errors: Questions without an answer.
        cpu_seconds: Of the process that answered: what other processes take does not change it.
        stages: Of each answer, the milliseconds that its graph's stages took by themselves.
    """

    milliseconds: Sequence[float]
    seconds: float
    errors: int
    cpu_seconds: float = 0.0
    stages: Sequence[float] = ()

    @property
    def per_second(self) -> float:
        """Return how many were answered in a second."""
        return len(self.milliseconds) / self.seconds

    @property
    def cpu_milliseconds(self) -> float:
        """Return the computing time of one answer."""
        return self.cpu_seconds * 1000 / max(1, len(self.milliseconds))

    def percentile(self, share: float) -> float:
        """Return a percentile of the answers' milliseconds."""
        return float(np.percentile(self.milliseconds, share)) if self.milliseconds else 0.0

    @property
    def outside_milliseconds(self) -> float:
        """Return the median of what an answer took beside its stages; 0 where they are not told."""
        return p50(np.subtract(self.milliseconds, self.stages)) if self.stages else 0.0


async def load(
    ask: Ask,
    questions: Sequence[str],
    clients: int,
    advance: Callable[[int], None] = lambda number: None,
    cpu: Callable[[], float] = time.process_time,
) -> Load:
    """Ask the questions, in this order, by so many clients at once, and time every answer.

    Args:
        ask: Asks one.
        questions: Each is asked once.
        clients: How many ask at the same time.
        advance: Told of every answer.
        cpu: The seconds that the process that answers has computed so far.
    """
    left = iter(questions)
    times: list[float] = []
    stages: list[float] = []
    errors = 0

    async def client() -> None:
        nonlocal errors
        for question in left:
            started = time.perf_counter()
            inside = await ask(question)
            if inside is None:
                errors += 1
            else:
                times.append((time.perf_counter() - started) * 1000)
                stages.append(inside)
            advance(1)

    computed, started = cpu(), time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return Load(times, time.perf_counter() - started, errors, cpu() - computed, stages)


@dataclass(frozen=True, slots=True)
class Served:
    """A running service: its address, and its process."""

    url: str
    pid: int

    def megabytes(self) -> float:
        """Return its resident memory; 0 where the system does not tell."""
        found = re.search(r"VmRSS:\s+(\d+) kB", self._read("status"))
        return int(found[1]) / 1024 if found else 0.0

    def cpu_seconds(self) -> float:
        """Return how long it has computed; 0 where the system does not tell."""
        fields = self._read("stat").rpartition(")")[2].split()
        # The 14th and 15th field of the whole line.
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def _read(self, name: str) -> str:
        try:
            return Path(f"/proc/{self.pid}/{name}").read_text(encoding="utf-8")
        except OSError:
            return ""


@contextmanager
def served(domain: str) -> Iterator[Served]:
    """Serve a domain, as users start it, on a free port while the block lasts."""
    command = [sys.executable, "-m", "casewright", "serve", "--without-tokens"]
    command += ["--host", "127.0.0.1", "--port", "0", "--domain", domain]
    # Settings of the service that the user has for others are not what is measured.
    settings = {**os.environ, "CASEWRIGHT_LOG_LEVEL": "warning", "CASEWRIGHT_RETAIN": "off"}

    def address(written: str) -> str | None:
        found = re.search(r"Serving on (http://\S+)", written)
        return found and found[1]

    with running(command, address, env=settings) as (url, pid):
        yield Served(url, pid)


def measure_service(domain: str, each: int, requests: int, seed: int = 0) -> Report:
    """Time questions of a domain, and watch the service's memory.

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
    session = open_session(domain)
    try:
        graph = session.graph(EXTRACTIVE)
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
    with progress_bar(label, len(CLIENTS) * len(questions), show=None) as advance:
        return {n: await load(ask, questions, n, advance, cpu) for n in CLIENTS}


async def _memory(service: Served, known: Sequence[str], requests: int) -> dict[str, float]:
    """Return the service's memory before, in the middle of and after so many requests."""
    first = max(1, int(requests * WARM_UP))
    middle = first + (requests - first) // 2
    asked = cycle(known)
    figures: dict[str, float] = {}
    errors = done = 0
    with progress_bar("Watching memory", requests, show=None) as advance:
        async with _asking(service) as ask:
            for until in (first, middle, requests):
                part = list(islice(asked, until - done))
                errors += (await load(ask, part, max(CLIENTS), advance)).errors
                figures[f"service_memory_mb_after_{until}_requests"] = service.megabytes()
                done = until
    return {**figures, f"errors_in_{requests}_requests": float(errors)}


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
    parts = ("planning_ms", "execution_ms", "generation_ms")
    return float(sum(answer["usage"][part] for part in parts))


def _row(clients: int, way: str, one: Load) -> dict[str, Any]:
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
        own, end = over_http[clients], f"{clients}_clients"
        ratio = own.per_second / bare[clients].per_second
        figures[f"service_requests_per_second_{end}"] = own.per_second
        figures[f"service_ms_p95_{end}"] = own.percentile(95)
        figures[f"ratio_service_over_bare_requests_per_second_{end}"] = ratio
    own, other = over_http[1], bare[1]
    outside = own.outside_milliseconds - other.outside_milliseconds
    return {
        **figures,
        "overhead_cpu_ms_1_client": own.cpu_milliseconds - other.cpu_milliseconds,
        "overhead_outside_ms_1_client": outside,
        "overhead_ms_p50_1_client": own.percentile(50) - other.percentile(50),
        f"errors_{max(CLIENTS)}_clients": float(over_http[max(CLIENTS)].errors),
    }


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
