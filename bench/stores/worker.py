"""A process a system, so that memory is its own; the processes take turns at the queries."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from casewright.bench.stores.data import query_of, weights_of
from casewright.bench.stores.systems import Casewright, System
from casewright.errors import StoreError

CASES, QUERIES = "cases.npy", "queries.npy"
#: Seconds of searching before a turn is timed, but no more than its queries once.
WARM = 1.0


class Spec(NamedTuple):
    """Which system: its kind, and the engine below where it has one."""

    kind: str
    engine: str = ""

    @property
    def name(self) -> str:
        """The name that figures are told by; local mode's end so."""
        return f"{self.kind}{self.ending}"

    @property
    def ending(self) -> str:
        """What the names of this system's searches end in."""
        return "_local" if self.engine == "local" else ""

    @property
    def kept(self) -> bool:
        """Whether it keeps its cases on disk."""
        return bool(self.engine)

    def system(self, folder: Path) -> System:
        """Return the system over a folder."""
        place = folder / self.name
        if self.kind == "casewright":
            return Casewright(place, self.engine)
        if self.kind == "cbrkit":
            from casewright.bench.stores.cbrkit import Cbrkit

            return Cbrkit()
        if self.engine == "edge":
            from casewright.bench.stores.named_edge import EdgeNamed

            return EdgeNamed(place)
        from casewright.bench.stores.named_local import LocalNamed

        return LocalNamed(place)


class Timed(NamedTuple):
    """One search: the query's number, milliseconds, and the numbers of the cases found."""

    query: int
    milliseconds: float
    found: Sequence[int]


class Worker:
    """A process that has one system; calls run there and return when they are done."""

    def __init__(self, spec: Spec, folder: Path) -> None:
        # Forked, it would have this process's memory too.
        context = multiprocessing.get_context("spawn")
        self._name = spec.name
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, spec, folder), daemon=True)
        with _one_thread():
            self._process.start()
        other.close()

    def build(self) -> tuple[float, float | None]:
        """Build the system, and return seconds and megabytes."""
        built: tuple[float, float | None] = self._ask("build")
        return built

    def open(self) -> float:
        """Open what was built, and return seconds."""
        return float(self._ask("open"))

    def searches(self) -> list[str]:
        """Return the names of the ways to search."""
        return list(self._ask("searches"))

    def search(self, name: str, queries: Sequence[int]) -> list[Timed]:
        """Search for these queries, one after the other; before, for a while, untimed."""
        return [Timed(*timed) for timed in self._ask("search", name, queries)]

    def memory(self) -> float | None:
        """Return the process's resident memory in megabytes; ``None`` where it cannot be read."""
        resident: float | None = self._ask("memory")
        return resident

    def close(self) -> None:
        """Close the system, and end the process."""
        self._ask("close")
        self._process.join()
        self._connection.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _ask(self, *message: Any) -> Any:
        try:
            self._connection.send(message)
            answer = self._connection.recv()
        except (EOFError, OSError) as error:
            self._process.join()
            raise StoreError(
                f"The process that measured {self._name} ended with "
                f"{self._process.exitcode}. Measure fewer cases, or free some memory."
            ) from error
        if isinstance(answer, Exception):
            raise answer
        return answer


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let NumPy's BLAS in a process started now use one thread.

    Two wait for each other wherever another process has a core, ten times as long as they compute.
    """
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(connection: Connection, spec: Spec, folder: Path) -> None:
    # Control-C reaches all processes of a terminal; the one that asked ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    system = spec.system(folder)
    while True:
        try:
            message = connection.recv()
        except EOFError:
            return
        try:
            connection.send(_answer(system, folder, *message))
        # Whatever it is, the process that asked is to tell it.
        except Exception as error:  # noqa: BLE001
            connection.send(error)
        if message[0] == "close":
            return


def _answer(system: System, folder: Path, what: str, *given: Any) -> Any:
    if what == "build":
        # A view that is no memmap: those are slow to take rows of.
        cases = np.asarray(np.load(folder / CASES, mmap_mode="r"))
        started = time.perf_counter()
        system.build(cases)
        seconds = time.perf_counter() - started
        # What was read from the file is not the system's memory.
        del cases
        gc.collect()
        return seconds, resident()
    if what == "open":
        started = time.perf_counter()
        system.open()
        return time.perf_counter() - started
    if what == "searches":
        return list(system.searches())
    if what == "search":
        return _searched(system, np.load(folder / QUERIES), *given)
    if what == "memory":
        return resident()
    return system.close()


def _searched(system: System, queries: Any, name: str, numbers: Sequence[int]) -> list[Timed]:
    search = system.searches()[name]
    # Another process had the processor, its caches and perhaps the memory before.
    until = time.perf_counter() + WARM
    for number in reversed(numbers):
        search(query_of(queries, number), weights_of(number))
        if time.perf_counter() > until:
            break
    done = []
    for number in numbers:
        query, weights = query_of(queries, number), weights_of(number)
        started = time.perf_counter()
        answer = search(query, weights)
        spent = (time.perf_counter() - started) * 1000
        done.append(Timed(number, spent, list(system.numbers(answer))))
    return done


def resident() -> float | None:
    """Return this process's resident memory in megabytes; ``None`` where there is no ``/proc``."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
