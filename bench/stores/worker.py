"""A process for each system, so that memory is its own; they take turns at the queries."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from casewright.bench.harness import timed
from casewright.bench.stores.data import WEIGHTS, query_of, weights_of
from casewright.bench.stores.named import EdgeNamed, LocalNamed
from casewright.bench.stores.systems import Casewright, Cbrkit, System
from casewright.errors import StoreError
from casewright.stores.progress import note

Result = TypeVar("Result")
CASES, QUERIES = "cases.npy", "queries.npy"
#: Seconds of searching before a turn is timed, but no more than its queries once.
WARM = 1.0
#: Queries of one turn, as many of each weight set; a search that has used so many seconds at one
#: size has no further turn.
TURN, SECONDS = 4 * len(WEIGHTS), 30
#: Of a worker's process: the system that it has, and its folder.
_system: System
_folder: Path


class Spec(NamedTuple):
    """A system by its kind, and by the engine below that keeps it on disk; empty without one."""

    kind: str
    engine: str = ""

    @property
    def name(self) -> str:
        """The name in figures; those of local mode have an ending."""
        return f"{self.kind}{self.ending}"

    @property
    def ending(self) -> str:
        """The ending of the names of this system's searches."""
        return "_local" if self.engine == "local" else ""

    def system(self, folder: Path) -> System:
        """Return the system over a folder."""
        own = folder / self.name
        if self.kind == "casewright":
            return Casewright(own, self.engine)
        if self.kind == "cbrkit":
            return Cbrkit()
        return EdgeNamed(own) if self.engine == "edge" else LocalNamed(own)


class Timed(NamedTuple):
    """One search: the query's number, milliseconds, and the numbers of the cases in the answer."""

    query: int
    milliseconds: float
    numbers: Sequence[int]


class Kept(NamedTuple):
    """The costs of a system's cases; ``None`` where there is nothing to measure.

    Attributes:
        build_s: Seconds until all cases are written.
        build_memory_mb: Resident memory after that.
        open_s: Seconds to open them in another process.
        memory_mb: Resident memory there, after the searches.
        disk_mb: What they take on disk, once closed.
    """

    build_s: float
    build_memory_mb: float | None
    open_s: float | None = None
    memory_mb: float | None = None
    disk_mb: float | None = None


class Measured(NamedTuple):
    """The measurements of one system."""

    spec: Spec
    kept: Kept
    searches: Mapping[str, Sequence[Timed]]


class Worker:
    """A process that has one system; its work is one of the functions below."""

    def __init__(self, spec: Spec, folder: Path) -> None:
        # Forked, it would have this process's memory too.
        context = multiprocessing.get_context("spawn")
        self._name = spec.name
        self._pool = ProcessPoolExecutor(1, context, initializer=_begin, initargs=(spec, folder))

    def do(self, work: Callable[..., Result], *given: Any) -> Result:
        """Return what a function returns there; ``StoreError`` where the process ended."""
        try:
            with _one_thread():
                return self._pool.submit(work, *given).result()
        except BrokenProcessPool as error:
            raise StoreError(
                f"The process that measured {self._name} ended. Measure fewer cases, or free some "
                "memory."
            ) from error

    def close(self) -> None:
        """Close the system, and end the process."""
        self.do(close)
        self._pool.shutdown()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        # None is at work any more but where something failed, which ends all.
        for process in multiprocessing.active_children():
            process.kill()
        self._pool.shutdown()


def measure_size(folder: Path, specs: Sequence[Spec], queries: int) -> list[Measured]:
    """Build each system from the cases in the folder, and time its searches, in turns.

    Args:
        folder: Holds the cases and the queries, and what the systems write.
        specs: Which systems.
        queries: How many queries there are.
    """
    with ExitStack() as stack:
        opened: list[tuple[Spec, Worker, Kept]] = []
        for spec in specs:
            note(f"  building {spec.name}")
            opened.append((spec, *_build(stack, spec, folder)))
        note("  searching in turns")
        done: list[dict[str, list[Timed]]] = [
            {name: [] for name in worker.do(searches)} for _, worker, _ in opened
        ]
        for start in range(0, queries, TURN):
            turn = range(start, min(start + TURN, queries))
            for (_, worker, _), searched in zip(opened, done, strict=True):
                for name, own in searched.items():
                    if sum(timed.milliseconds for timed in own) < SECONDS * 1000:
                        own += worker.do(search, name, turn)
        measured = []
        for (spec, worker, kept), searched in zip(opened, done, strict=True):
            kept = kept._replace(memory_mb=worker.do(resident))
            measured.append(Measured(spec, kept, searched))
            worker.close()
        return measured


def _build(stack: ExitStack, spec: Spec, folder: Path) -> tuple[Worker, Kept]:
    """Build a system, and return a process that has it open and ends with the stack."""
    worker = stack.enter_context(Worker(spec, folder))
    seconds, memory = worker.do(build)
    if not spec.engine:
        return worker, Kept(seconds, memory)
    worker.close()
    # Files may have holes.
    files = (file for file in (folder / spec.name).rglob("*") if file.is_file())
    disk = sum(file.stat().st_blocks * 512 for file in files) / 1e6
    worker = stack.enter_context(Worker(spec, folder))
    return worker, Kept(seconds, memory, worker.do(open_), disk_mb=disk)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let NumPy's BLAS in a process started now use one thread.

    Two wait for each other wherever another process has a core, ten times as long as they compute.
    """
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ[name] for name in names if name in os.environ}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]
        os.environ.update(before)


def _begin(spec: Spec, folder: Path) -> None:
    global _system, _folder
    # Control-C reaches all processes of a terminal; the one that asked ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _system, _folder = spec.system(folder), folder


def build() -> tuple[float, float | None]:
    """Build the system; return seconds, and megabytes after it."""
    # A view that is no memmap, whose rows are slow to read.
    cases = np.asarray(np.load(_folder / CASES, mmap_mode="r"))
    spent = timed(partial(_system.build, cases))[1]
    # The file's contents are not the system's memory.
    del cases
    gc.collect()
    return spent / 1000, resident()


def open_() -> float:
    """Open what was built, and return seconds."""
    return timed(_system.open)[1] / 1000


def searches() -> list[str]:
    """Return the names of the ways to search."""
    return list(_system.searches())


def search(name: str, numbers: Sequence[int]) -> list[Timed]:
    """Search for these queries, one after the other; before, for a while, untimed."""
    queries, way = np.load(_folder / QUERIES), _system.searches()[name]
    works = {n: partial(way, query_of(queries, n), weights_of(n)) for n in numbers}
    # Another process had the processor, its caches and perhaps the memory before.
    spent = 0.0
    for number in reversed(numbers):
        spent += timed(works[number])[1]
        if spent > WARM * 1000:
            break
    done = []
    for number, work in works.items():
        answer, spent = timed(work)
        done.append(Timed(number, spent, list(_system.numbers(answer))))
    return done


def resident() -> float | None:
    """Return this process's resident memory in megabytes; ``None`` where there is no ``/proc``."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def close() -> None:
    """Close the system."""
    _system.close()
