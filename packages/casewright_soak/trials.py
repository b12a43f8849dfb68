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
    #: Descriptions of all failures, also of losses, each with the name of its trial.
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
        """Yield 0, 1, … up to a bound; the caller counts one trial or more for each number."""
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
#: The way in which a call in a child process ended, and details: the result if ``done``, the error
#: if ``told`` or ``failed``, the signal or exit code if ``died``, or the time limit if ``late``.
Ending = tuple[Literal["done", "told", "failed", "died", "late"], Any]


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


@contextmanager
def child_running(work: Callable[..., None], *arguments: Any) -> Iterator[tuple[Connection, Any]]:
    """Call ``work`` in a child process with a pipe's end; yield the other end and the process."""
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


def in_child(work: Callable[..., Any], *arguments: Any, seconds: float = 600.0) -> Ending:
    """Call a plain or async function in a child process, and return how the call ended."""
    with child_running(_send_ending, work, arguments) as (pipe, process):
        try:
            if not pipe.poll(seconds):
                return "late", f"{seconds:g} s"
            ending: Ending = pipe.recv()
        except EOFError:
            process.join()
            code = process.exitcode or 0
            ending = ("died", signal.Signals(-code).name if code < 0 else f"code {code}")
        return ending


def _send_ending(pipe: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    # Nobody needs the messages that killed engines write to stderr.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        with patch.object(edge_child, "child_process", _in_fork):
            result = work(*arguments)
            if inspect.iscoroutine(result):
                result = asyncio.run(result)
            ending: Ending = ("done", result)
    except CasewrightError as error:
        ending = ("told", f"{type(error).__name__}: {error}")
    except BaseException as error:  # noqa: BLE001
        ending = ("failed", one_line(error))
    pipe.send(ending)
    pipe.close()


def _in_fork(task: str, disk: ShardFolder, lock: IO[str]) -> CompletedProcess[str]:
    """Run the task of a store's child process in a fork, which starts faster than a new process."""
    read_end, write_end = os.pipe()
    child_id = os.fork()
    if child_id == 0:
        try:
            answer = edge_child.run_task(task, str(disk.store), disk.collection)
            os.write(write_end, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    return CompletedProcess([], os.waitstatus_to_exitcode(os.waitpid(child_id, 0)[1]), text, "")
