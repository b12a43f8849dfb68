"""The bounds and the counts of trials, and calls in child processes that may be killed."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from subprocess import CompletedProcess
from typing import IO, Any, Literal, NamedTuple
from unittest.mock import patch

from casewright.errors import CasewrightError, one_line
from casewright.stores.engines import edge_child
from casewright.stores.engines.edge_shard import ShardFolder
from casewright.stores.progress import show_progress

#: Maximum number of failures that a report describes; more failures are only counted.
MAX_DESCRIBED = 20


@dataclass
class Counts:
    """The counts of one kind of trials."""

    name: str
    tried: int = 0  # trials of any outcome
    sound: int = 0  # trials with the right result
    told: int = 0  # trials that ended with a CasewrightError
    lost: int = 0  # acknowledged cases or answers that are gone without an error
    #: Descriptions of other failures, each with the name of its trial.
    wrong: list[str] = field(default_factory=list)
    skipped: str = ""  # the reason why no trial was possible; else empty

    def add(self, outcome: str, trial: str) -> None:
        """Count a trial by its outcome: ``sound``, ``told``, or the description of a failure."""
        self.tried += 1
        if outcome in ("sound", "told"):
            setattr(self, outcome, getattr(self, outcome) + 1)
        else:
            self.wrong.append(f"{self.name}, {trial}: {outcome}")


class Bounds(NamedTuple):
    """The bounds of one kind of trials."""

    seconds: float  # the approximate duration
    seed: int = 0
    max_trials: int | None = None  # the maximum number of trials

    def trials(self, counts: Counts) -> Iterator[int]:
        """Yield the numbers of trials from 0, at least one, until a bound is reached."""
        deadline = time.monotonic() + self.seconds
        with show_progress(counts.name, self.max_trials, "trials") as advance:
            for number in itertools.count():
                tried_before = counts.tried
                yield number
                advance(counts.tried - tried_before)
                if time.monotonic() >= deadline or counts.tried >= (self.max_trials or math.inf):
                    return


#: Modules that the fork server imports for all children, before it starts the first child.
PRELOADED = [
    "__main__",
    "casewright_soak.workload",
    "casewright.stores",
    "casewright.stores.documents.reader",
    "llama_index.core.node_parser",
    "qdrant_client.local.qdrant_local",
    "qdrant_edge",
]
#: The kind of an outcome, and its details: the result if ``done``, the error if ``told`` or
#: ``failed``, the signal or exit code if ``died``, or the time limit if ``late``.
Outcome = tuple[Literal["done", "told", "failed", "died", "late"], Any]


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


@contextmanager
def child_running(work: Callable[..., None], *arguments: Any) -> Iterator[tuple[Connection, Any]]:
    """Call ``work`` with a pipe's end in a child process; yield the other end and the process."""
    reader, writer = _context().Pipe(duplex=False)
    options: dict[str, Any] = {"args": (writer, *arguments), "daemon": True}
    process: ForkServerProcess = _context().Process(target=work, **options)
    process.start()
    writer.close()
    try:
        yield reader, process
    finally:
        process.kill()
        process.join()
        reader.close()


def in_child(work: Callable[..., Any], *arguments: Any, seconds: float = 600.0) -> Outcome:
    """Call ``work``, a plain or async function, in a child process, and return the outcome."""
    with child_running(_send_outcome, work, arguments) as (answers, process):
        try:
            if not answers.poll(seconds):
                return "late", f"{seconds:g} s"
            outcome: Outcome = answers.recv()
        except EOFError:
            process.join()
            code = process.exitcode or 0
            outcome = ("died", signal.Signals(-code).name if code < 0 else f"code {code}")
        return outcome


def _send_outcome(answer: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    # Nobody needs the messages that killed engines write to stderr.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        with patch.object(edge_child, "child_process", _in_fork):
            result = work(*arguments)
            if inspect.iscoroutine(result):
                result = asyncio.run(result)
            outcome: Outcome = ("done", result)
    except CasewrightError as error:
        outcome = ("told", f"{type(error).__name__}: {error}")
    except BaseException as error:  # noqa: BLE001
        outcome = ("failed", one_line(error))
    answer.send(outcome)
    answer.close()


def _in_fork(task: str, disk: ShardFolder, lock: IO[str]) -> CompletedProcess[str]:
    """Run the task of a store's child process in a fork, which starts faster than a new process."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer = edge_child.run_task(task, str(disk.store), disk.collection)
            os.write(write_end, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    return CompletedProcess([], os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text, "")
