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
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from casewright.errors import CasewrightError
from casewright.stores import CaseStore
from casewright_soak import workload
from casewright_soak.trials import Bounds, Counts, child_running, in_child

#: Each trial kills a process seven steps later than the previous trial, so that few trials span all
#: of the work. After a trial in which the work ends, a new round of trials starts one step later.
STRIDE = 7
#: Python's audit events that count as steps: changes of files. ``open`` counts only for writing.
STEP_EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "open")


def random_kills(bounds: Bounds, folder: Path) -> Counts:
    """Kill a process that adds notes to a store; no acknowledged note may be lost."""
    counts, rng = Counts("killed at any moment"), random.Random(bounds.seed)
    for number in bounds.trials(counts):
        store = folder / f"random{number // 4}"  # four trials in a row use one store
        acknowledged = _kill_writer(store, rng.uniform(0, 0.2))
        ending, numbers = in_child(stored_numbers, store)
        if ending == "done" and set(range(acknowledged)) <= set(numbers):
            counts.add("sound", str(number))
        else:
            counts.lost += max(0, acknowledged - len(numbers)) if ending == "done" else 0
            counts.add(f"{ending} {numbers!r:.300}, acknowledged {acknowledged}", str(number))
        if number % 4 == 3:
            shutil.rmtree(store)
    return counts


def stored_numbers(folder: Path) -> list[int]:
    """Return the numbers of the notes in a store."""
    with CaseStore(workload.schema(), folder) as store:
        return sorted(case.metadata["number"] for case in store.all())


def write_until_killed(pipe: Connection, folder: Path) -> None:
    """Add notes to a store without end; after each batch, send the store's number of notes."""
    with CaseStore(workload.schema(), folder, lock_seconds=10) as store:
        # A killed writer may have stored a part of a batch; this batch is added again.
        count = store.count() // workload.BATCH_SIZE * workload.BATCH_SIZE
        while True:
            store.add(workload.notes(count, count + workload.BATCH_SIZE), progress=False)
            count += workload.BATCH_SIZE
            pipe.send(count)


def _kill_writer(folder: Path, delay: float) -> int:
    """Kill a writer ``delay`` s after its first batch; return the number of acknowledged notes."""
    count = 0
    with child_running(write_until_killed, folder) as (pipe, process), suppress(EOFError):
        count = pipe.recv()
        time.sleep(delay)
        process.kill()
        while True:  # until EOFError
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
    """Write notes to a new or old store; return its contents, with only the solutions of cases."""
    workload.write_notes(folder)
    result = workload.store_contents(folder)
    return {**result, "cases": {id_: case["solution"] for id_, case in result["cases"].items()}}


def kill_at_steps(
    bounds: Bounds, folder: Path, counts: Counts, work: Callable[..., Any], *arguments: Any
) -> Counts:
    """Kill ``work`` at each step; a repetition must have the same result as without a kill.

    ``work`` is called with a new folder and ``arguments``.
    """
    ending, right_result = in_child(work, folder / "whole", *arguments)
    if ending != "done":
        raise CasewrightError(f"{counts.name}: without a kill, {ending} {right_result}")
    step = bounds.seed % STRIDE
    for number in bounds.trials(counts):
        trial_folder = folder / f"step{number}"
        work_until_step = partial(run_until_step, step, str(trial_folder), work)
        first_ending, _ = in_child(work_until_step, trial_folder, *arguments)
        second_ending, result = in_child(work, trial_folder, *arguments)
        is_right = second_ending == "done" and result == right_result
        counts.lost += not is_right
        counts.add("sound" if is_right else f"{second_ending} {result!r:.300}", f"step {step}")
        shutil.rmtree(trial_folder, ignore_errors=True)
        step = (step + 1) % STRIDE if first_ending == "done" else step + STRIDE
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
        writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT
        is_write = event != "open" or (isinstance(values[2], int) and values[2] & writing)
        if is_write and folder in os.fsdecode(values[0]):
            if remaining == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            remaining -= 1

    sys.addaudithook(audit)
    return work(*arguments)
