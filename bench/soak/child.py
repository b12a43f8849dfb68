"""Work in a process of its own, which may die."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from subprocess import CompletedProcess
from typing import IO, Any, Literal
from unittest.mock import patch

from casewright.errors import CasewrightError, told
from casewright.stores.engines import edge_child
from casewright.stores.engines.edge_shard import ShardFolder

#: Modules that the fork server imports once for all children.
PRELOADED = [
    "__main__",
    "casewright.bench.soak.workload",
    "casewright.stores",
    "casewright.stores.documents.reader",
    "llama_index.core.node_parser",
    "qdrant_client.local.qdrant_local",
    "qdrant_edge",
]
Outcome = tuple[Literal["done", "told", "failed", "died", "late"], Any]


def preload(*modules: str) -> None:
    """Add modules that the fork server imports; without effect once there was a child."""
    PRELOADED.extend(modules)


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


@contextmanager
def running(work: Callable[..., None], *arguments: Any) -> Iterator[tuple[Connection, Any]]:
    """Run some work in a process; yield the reading end of its pipe, and the process.

    Args:
        work: Is called with the writing end, and the arguments.
        arguments: Of the work.
    """
    ours, theirs = _context().Pipe(duplex=False)
    process: ForkServerProcess = _context().Process(
        target=work, args=(theirs, *arguments), daemon=True
    )
    process.start()
    theirs.close()
    try:
        yield ours, process
    finally:
        process.kill()
        process.join()
        ours.close()


def in_child(work: Callable[..., Any], *arguments: Any, seconds: float = 600.0) -> Outcome:
    """Return the outcome of some work: its result, an error of ours, another, a signal, no end."""
    with running(_do, work, arguments) as (answers, process):
        try:
            if not answers.poll(seconds):
                return "late", f"{seconds:g} s"
            outcome: Outcome = answers.recv()
        except EOFError:
            process.join()
            code = process.exitcode or 0
            outcome = ("died", signal.Signals(-code).name if code < 0 else f"code {code}")
        return outcome


def _do(answer: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    # The last words of an engine that dies are no result.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        with patch.object(edge_child, "child_process", _forked):
            outcome: Outcome = ("done", work(*arguments))
    except CasewrightError as error:
        outcome = ("told", f"{type(error).__name__}: {error}")
    except BaseException as error:  # noqa: BLE001
        outcome = ("failed", told(error))
    answer.send(outcome)
    answer.close()


def _forked(task: str, disk: ShardFolder, lock: IO[str]) -> CompletedProcess[str]:
    """Return the result of a store's child's task, from a fork: Python's start takes longer."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer = edge_child.task_done(task, str(disk.store), disk.collection)
            os.write(writing, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    return CompletedProcess([], os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text, "")
