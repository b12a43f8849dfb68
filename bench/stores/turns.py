"""All systems of one size: built one after the other, then searched in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from casewright.bench.stores.data import WEIGHTS
from casewright.bench.stores.worker import Spec, Timed, Worker
from casewright.stores.progress import note

#: Queries of one turn, as many of each weight set.
TURN = 4 * len(WEIGHTS)
#: A search that has used so many seconds at one size has no further turn.
SECONDS = 30


class Kept(NamedTuple):
    """What it takes to keep a system's cases; ``None`` where there is nothing to tell.

    Attributes:
        build_s: Seconds until all cases are written.
        build_memory_mb: Resident memory after that.
        open_s: Seconds to open them in another process.
        memory_mb: Resident memory there, after the searches.
        disk_mb: What they take on disk, once closed.
    """

    build_s: float
    build_memory_mb: float | None
    open_s: float | None
    memory_mb: float | None
    disk_mb: float | None


class Measured(NamedTuple):
    """What came of one system."""

    spec: Spec
    kept: Kept
    searches: Mapping[str, Sequence[Timed]]


def measure_size(folder: Path, specs: Sequence[Spec], queries: int) -> list[Measured]:
    """Build each system from the cases in the folder, and time its searches.

    Args:
        folder: Holds the cases and the queries, and what the systems write.
        specs: Which systems.
        queries: How many queries there are.

    Raises:
        StoreError: A system's process ended, or cannot use its folder.
    """
    with ExitStack() as stack:
        opened: list[tuple[Spec, Worker, Kept]] = []
        for spec in specs:
            note(f"  building {spec.name}")
            opened.append((spec, *_build(stack, spec, folder)))
        note("  searching in turns")
        timed = _take_turns([worker for _, worker, _ in opened], queries)
        measured = []
        for (spec, worker, kept), searches in zip(opened, timed, strict=True):
            measured.append(Measured(spec, kept._replace(memory_mb=worker.memory()), searches))
            worker.close()
        return measured


def _build(stack: ExitStack, spec: Spec, folder: Path) -> tuple[Worker, Kept]:
    """Build a system, and return a process that has it open and ends with the stack."""
    worker = stack.enter_context(Worker(spec, folder))
    seconds, memory = worker.build()
    if not spec.kept:
        return worker, Kept(seconds, memory, None, None, None)
    worker.close()
    disk = _megabytes(folder / spec.name)
    worker = stack.enter_context(Worker(spec, folder))
    return worker, Kept(seconds, memory, worker.open(), None, disk)


def _take_turns(workers: Sequence[Worker], queries: int) -> list[dict[str, list[Timed]]]:
    """Let every search have some queries, then all of them the next, until there are no more."""
    timed: list[dict[str, list[Timed]]] = [
        {name: [] for name in worker.searches()} for worker in workers
    ]
    for start in range(0, queries, TURN):
        turn = range(start, min(start + TURN, queries))
        for worker, searches in zip(workers, timed, strict=True):
            for name, done in searches.items():
                if sum(one.milliseconds for one in done) < SECONDS * 1000:
                    done += worker.search(name, turn)
    return timed


def _megabytes(folder: Path) -> float:
    """Return what a folder takes on disk; files may have holes."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return sum(file.stat().st_blocks * 512 for file in files) / 1e6
