"""Trials that kill a process at a random moment, or at each of its writes to files in turn."""

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

from casewright.errors import CasewrightError
from casewright.stores import CaseStore
from casewright_soak import workload
from casewright_soak.trials import Bounds, Counts, child_running, in_child

#: A process is killed at every seventh step, so that few trials cover all of the work. If the work
#: ends before the kill, the next round of trials starts one step later.
STRIDE = 7
#: The steps: Python's audit events for changes of files; ``open`` counts only for writing.
STEP_EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "open")


def random_kills(bounds: Bounds, folder: Path) -> Counts:
    """Kill a process that writes to a store; no acknowledged note may be lost."""
    counts, rng = Counts("killed at any moment"), random.Random(bounds.seed)
    for number in bounds.trials(counts):
        store = folder / f"random{number // 4}"
        note_count = _kill_writer(store, rng.uniform(0, 0.2))
        outcome, numbers = in_child(stored_numbers, store)
        if outcome == "done" and set(range(note_count)) <= set(numbers):
            counts.add("sound", str(number))
        else:
            counts.lost += max(0, note_count - len(numbers)) if outcome == "done" else 0
            counts.add(f"{outcome} {numbers!r:.300}, acknowledged {note_count}", str(number))
        if number % 4 == 3:
            shutil.rmtree(store)
    return counts


def stored_numbers(folder: Path) -> list[int]:
    """Return the numbers of the notes in a store."""
    with CaseStore(workload.schema(), folder) as store:
        return sorted(case.metadata["number"] for case in store.all())


def write_until_killed(pipe: Connection, folder: Path) -> None:
    """Add notes to a store without end; after each batch, send the number of notes."""
    with CaseStore(workload.schema(), folder, lock_seconds=10) as store:
        # The store may also have some or all notes of a batch that was not acknowledged.
        first = store.count() // workload.BATCH_SIZE * workload.BATCH_SIZE
        while True:
            store.add(workload.notes(first, first + workload.BATCH_SIZE), progress=False)
            first += workload.BATCH_SIZE
            pipe.send(first)


def _kill_writer(folder: Path, delay: float) -> int:
    """Kill a writer after ``delay`` seconds; return the number of acknowledged notes."""
    count = 0
    with child_running(write_until_killed, folder) as (pipe, process), suppress(EOFError):
        count = pipe.recv()
        time.sleep(delay)
        process.kill()
        while True:
            count = pipe.recv()
    return count


def kills_of_ingest(bounds: Bounds, folder: Path) -> Counts:
    """Kill an ingestion at each step; the next ingestion must complete it."""
    documents = workload.write_documents(folder / "documents")
    counts = Counts("killed at each step of ingest")
    return kill_at_steps(bounds, folder, counts, workload.ingest_and_read, documents)


def kills_of_writes(bounds: Bounds, folder: Path) -> Counts:
    """Kill a process at each step of its writes to a store; a repetition must complete them."""
    return kill_at_steps(bounds, folder, Counts("killed at each step of writes"), write_and_read)


def write_and_read(folder: Path) -> dict[str, Any]:
    """Write notes to a new or existing store, and return its contents."""
    workload.write_notes(folder)
    result = workload.store_contents(folder)
    return {**result, "cases": {id_: case["solution"] for id_, case in result["cases"].items()}}


def kill_at_steps(
    bounds: Bounds, folder: Path, counts: Counts, work: Callable[..., Any], *arguments: Any
) -> Counts:
    """Kill ``work`` at each step; a repetition must have the same result as without a kill.

    ``work`` is called with a new folder and ``arguments``.
    """
    outcome, right = in_child(work, folder / "whole", *arguments)
    if outcome != "done":
        raise CasewrightError(f"{counts.name}: without a kill, {outcome} {right}")
    step = bounds.seed % STRIDE
    for number in bounds.trials(counts):
        trial_folder = folder / f"step{number}"
        killed_work = (run_until_step, step, str(trial_folder), work)
        outcome, _ = in_child(*killed_work, trial_folder, *arguments)
        second_outcome, result = in_child(work, trial_folder, *arguments)
        is_right = second_outcome == "done" and result == right
        counts.lost += not is_right
        counts.add("sound" if is_right else f"{second_outcome} {result!r:.300}", f"step {step}")
        shutil.rmtree(trial_folder, ignore_errors=True)
        step = (step + 1) % STRIDE if outcome == "done" else step + STRIDE
    return counts


def run_until_step(step: int, folder: str, work: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of ``work``, or kill this process at step ``step`` of the work.

    Steps are counted from 0. Only changes of files below ``folder`` count as steps.
    """
    remaining = step

    def audit(event: str, values: tuple[Any, ...]) -> None:
        nonlocal remaining
        if event not in STEP_EVENTS or not isinstance(values[0], (str, bytes, os.PathLike)):
            return
        flags = values[2] if event == "open" else os.O_CREAT
        is_write = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if is_write and folder in os.fsdecode(values[0]):
            if remaining == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            remaining -= 1

    sys.addaudithook(audit)
    return work(*arguments)
