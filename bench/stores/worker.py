"""Worker processes, which search in turns; each has one system, whose memory it measures."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from unittest.mock import patch

import numpy as np

from casewright.bench.harness import resident_bytes, timed
from casewright.bench.stores.data import WEIGHT_SETS, query_of, weights_of
from casewright.bench.stores.systems import Casewright, Cbrkit, NamedVectors, System
from casewright.errors import StoreError
from casewright.stores.progress import note

Result = TypeVar("Result")
CASES_FILE, QUERIES_FILE = "cases.npy", "queries.npy"
#: Seconds of untimed searches before a turn; a query of the turn is used at most once.
WARM_UP_SECONDS = 1.0
#: Number of queries in a turn, equally many for each set of weights.
TURN_QUERY_COUNT = 4 * len(WEIGHT_SETS)
#: A search gets no more turns after its timed calls took this many seconds.
MAX_SEARCH_SECONDS = 30
#: Environment variables that give a worker one BLAS thread. Two threads would wait for each other
#: ten times as long as they compute if another process used one of their cores.
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
#: The system and the folder of the cases, which are set only in a worker process.
_system: System
_folder: Path
#: Functions from a folder to a system, by the system's name; cbrkit needs no folder.
SYSTEMS: dict[str, Callable[[Path], System]] = {"casewright": Casewright}
SYSTEMS |= {"named_vectors": NamedVectors, "cbrkit": lambda folder: Cbrkit()}


class TimedSearch(NamedTuple):
    """A search: the query's number, milliseconds, and the numbers of the cases in the answer."""

    query: int
    milliseconds: float
    numbers: Sequence[int]


class Costs(NamedTuple):
    """A system's costs; ``None`` if a cost cannot be measured, or the system does not have it."""

    build_s: float
    build_memory_mb: float | None  # after the build
    open_s: float | None = None
    memory_mb: float | None = None  # after the searches
    disk_mb: float | None = None


class SystemResults(NamedTuple):
    """The measurements of one system."""

    system: str
    costs: Costs
    timed_searches: Mapping[str, list[TimedSearch]]


class Worker(AbstractContextManager["Worker"]):
    """A process that holds one system, and runs the functions at the end of this file."""

    def __init__(self, name: str, folder: Path) -> None:
        # A forked process would share the memory of this process.
        context = multiprocessing.get_context("spawn")
        self._name = name
        self._pool = ProcessPoolExecutor(1, context, initializer=_begin, initargs=(name, folder))

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function in the process; raise ``StoreError`` if the process has ended."""
        try:
            with patch.dict(os.environ, ONE_THREAD):
                return self._pool.submit(function, *arguments).result()
        except BrokenProcessPool as error:
            raise StoreError(
                f"The process that measured {self._name} ended. Measure fewer cases, or free some "
                "memory."
            ) from error

    def close(self) -> None:
        """Close the system, and end the process."""
        self.call(close_system)
        self._pool.shutdown()

    def __exit__(self, *_: object) -> None:
        # After an error, any worker's process may still be working, so all are killed.
        for process in multiprocessing.active_children():
            process.kill()
        self._pool.shutdown()


def measure_systems(folder: Path, query_count: int) -> list[SystemResults]:
    """Build each system from the cases in a folder, and time the searches in turns."""
    with ExitStack() as stack:
        measured: dict[Worker, SystemResults] = {}
        for system in SYSTEMS:
            note(f"  building {system}")
            worker, costs = _build(stack, system, folder)
            searches_by_name = {name: list[TimedSearch]() for name in worker.call(search_names)}
            measured[worker] = SystemResults(system, costs, searches_by_name)
        note("  searching in turns")
        for start in range(0, query_count, TURN_QUERY_COUNT):
            turn = range(start, min(start + TURN_QUERY_COUNT, query_count))
            for worker, results in measured.items():
                for name, searches in results.timed_searches.items():
                    if sum(item.milliseconds for item in searches) < MAX_SEARCH_SECONDS * 1000:
                        searches += worker.call(time_searches, name, turn)
        for worker, results in measured.items():
            costs = results.costs._replace(memory_mb=worker.call(resident_mb))
            measured[worker] = results._replace(costs=costs)
            worker.close()
        return list(measured.values())


def _build(stack: ExitStack, system: str, folder: Path) -> tuple[Worker, Costs]:
    """Build a system; return a worker that opened it, and its costs. ``stack`` ends the worker."""
    worker = stack.enter_context(Worker(system, folder))
    seconds, memory = worker.call(build_system)
    if system == "cbrkit":
        return worker, Costs(seconds, memory)
    worker.close()
    # The size on disk counts blocks, since files may be sparse.
    files = (file for file in (folder / system).rglob("*") if file.is_file())
    disk = sum(file.stat().st_blocks * 512 for file in files) / 1e6
    worker = stack.enter_context(Worker(system, folder))
    return worker, Costs(seconds, memory, worker.call(open_system), disk_mb=disk)


def _begin(name: str, folder: Path) -> None:
    global _system, _folder
    # Control-C signals all processes of a terminal. A worker ignores it; its parent ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _system, _folder = SYSTEMS[name](folder / name), folder


def build_system() -> tuple[float, float | None]:
    """Build the system; return the seconds, and the process's memory in MB afterwards."""
    # Rows of a memmap are slow to read, so ``asarray`` makes a plain array of it.
    cases = np.asarray(np.load(_folder / CASES_FILE, mmap_mode="r"))
    milliseconds = timed(partial(_system.build, cases))[1]
    # The mapped file is not part of the system's memory.
    del cases
    gc.collect()
    return milliseconds / 1000, resident_mb()


def open_system() -> float:
    """Open the built system; return the seconds."""
    return timed(_system.open)[1] / 1000


def search_names() -> list[str]:
    """Return the names of the system's searches."""
    return list(_system.searches())


def time_searches(name: str, query_numbers: Sequence[int]) -> list[TimedSearch]:
    """Return timed searches for these queries, after some untimed ones."""
    queries, search = np.load(_folder / QUERIES_FILE), _system.searches()[name]
    calls = {n: partial(search, query_of(queries, n), weights_of(n)) for n in query_numbers}
    # Since the last turn, other processes have replaced the data in the processor's caches.
    warm_up_ms = 0.0
    for number in reversed(query_numbers):
        warm_up_ms += timed(calls[number])[1]
        if warm_up_ms > WARM_UP_SECONDS * 1000:
            break
    results = []
    for number, call in calls.items():
        answer, milliseconds = timed(call)
        results.append(TimedSearch(number, milliseconds, list(_system.case_numbers(answer))))
    return results


def resident_mb() -> float | None:
    """Return this process's resident memory in MB (10^6 bytes); ``None`` without ``/proc``."""
    memory = resident_bytes()
    return None if memory is None else memory / 1e6


def close_system() -> None:
    """Close the system."""
    _system.close()
