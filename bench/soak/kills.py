"""Kills of processes at a random moment, and at each of their steps in turn."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from casewright.bench.soak.trials import Bounds, Counts, in_child, running
from casewright.bench.soak.workload import (
    BATCH,
    answers,
    ingested,
    notes,
    schema,
    write_documents,
    write_notes,
)
from casewright.errors import CasewrightError
from casewright.stores import CaseStore

#: Python's audit events of changes to files; ``open`` counts if it is for writing. A round of
#: trials kills at every seventh event, so that the first round reaches all parts of the work.
STRIDE = 7
STEPS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "open")


def random_kills(bounds: Bounds, folder: Path) -> Counts:
    """Kill a process that writes to a store: no acknowledged note may be lost."""
    counts, chance = Counts("killed at any moment"), random.Random(bounds.seed)
    for number in bounds.trials(counts):
        store = folder / f"random{number // 4}"
        acknowledged = _killed_writer(store, chance.uniform(0, 0.2))
        outcome, numbers = in_child(kept_numbers, store)
        if outcome == "done" and set(range(acknowledged)) <= set(numbers):
            counts.add("sound", str(number))
        else:
            counts.lost += max(0, acknowledged - len(numbers)) if outcome == "done" else 0
            counts.add(f"{outcome} {numbers!r:.300}, acknowledged {acknowledged}", str(number))
        if number % 4 == 3:
            shutil.rmtree(store)
    return counts


def kept_numbers(folder: Path) -> list[int]:
    """Return the numbers of the notes in a store."""
    with CaseStore(schema(), folder) as store:
        return sorted(case.metadata["number"] for case in store.all())


def write_on(acknowledged: Connection, folder: Path) -> None:
    """Add notes to a store until the kill, and send the number of acknowledged notes."""
    with CaseStore(schema(), folder, lock_seconds=10) as store:
        # An unacknowledged batch may be in the store, whole or in part.
        first = store.count() // BATCH * BATCH
        while True:
            store.add(notes(first, first + BATCH), progress=False)
            first += BATCH
            acknowledged.send(first)


def _killed_writer(folder: Path, delay: float) -> int:
    count = 0
    with running(write_on, folder) as (acknowledged, process), suppress(EOFError):
        count = acknowledged.recv()
        time.sleep(delay)
        process.kill()
        while True:
            count = acknowledged.recv()
    return count


def kills_of_ingest(bounds: Bounds, folder: Path) -> Counts:
    """Kill an ingestion at each step in files: the next one must complete it."""
    documents = write_documents(folder / "documents")
    counts = Counts("killed at each step of ingest")
    return each_step(bounds, folder, counts, ingested, documents)


def kills_of_writes(bounds: Bounds, folder: Path) -> Counts:
    """Kill a process at each step of its writes to a store: repeated, they must be complete."""
    return each_step(bounds, folder, Counts("killed at each step of writes"), written)


def written(folder: Path) -> dict[str, Any]:
    """Write notes to a new or existing store, and return its answers."""
    write_notes(folder)
    result = answers(folder)
    return {**result, "cases": {id_: case["solution"] for id_, case in result["cases"].items()}}


def each_step(
    bounds: Bounds, folder: Path, counts: Counts, work: Callable[..., Any], *arguments: Any
) -> Counts:
    """Kill ``work`` at each step in files: repeated, its result must be as without a kill.

    The work's arguments are a new folder and ``arguments``.
    """
    outcome, right = in_child(work, folder / "whole", *arguments)
    if outcome != "done":
        raise CasewrightError(f"{counts.name}: without a kill, {outcome} {right}")
    step = bounds.seed % STRIDE
    for number in bounds.trials(counts):
        trial_folder = folder / f"step{number}"
        outcome, _ = in_child(killed_at, step, str(trial_folder), work, trial_folder, *arguments)
        second, result = in_child(work, trial_folder, *arguments)
        same = second == "done" and result == right
        counts.lost += not same
        counts.add("sound" if same else f"{second} {result!r:.300}", f"step {step}")
        shutil.rmtree(trial_folder, ignore_errors=True)
        step = (step + 1) % STRIDE if outcome == "done" else step + STRIDE
    return counts


def killed_at(step: int, below: str, work: Callable[..., Any], *arguments: Any) -> Any:
    """Do some work until the kill at its step of this number, from 0, in files below a folder."""
    left = step

    def audit(event: str, values: tuple[Any, ...]) -> None:
        nonlocal left
        if event not in STEPS or not isinstance(values[0], (str, bytes, os.PathLike)):
            return
        flags = values[2] if event == "open" else os.O_CREAT
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes and below in os.fsdecode(values[0]):
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    sys.addaudithook(audit)
    return work(*arguments)
