"""Work in a process of its own, which may die of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import Any, Literal

from casewright.errors import CasewrightError, told

#: What children need, imported once by the process that they are forked of.
PRELOADED = ["__main__", "casewright.bench.soak.workload", "casewright.stores", "qdrant_edge"]
Outcome = tuple[Literal["done", "told", "failed", "died", "late"], Any]


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def in_child(work: Callable[..., Any], *arguments: Any, seconds: float = 120.0) -> Outcome:
    """Return what came of some work: its result, an error of ours, another, a signal, no end."""
    ours, theirs = _context().Pipe(duplex=False)
    process = _context().Process(target=_do, args=(theirs, work, arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        outcome: Outcome = ours.recv() if ours.poll(seconds) else ("late", f"{seconds:g} s")
    except EOFError:
        process.join()
        outcome = ("died", _name(process.exitcode or 0))
    if outcome[0] == "late":
        process.kill()
    process.join()
    ours.close()
    return outcome


def _do(answer: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    # What an engine writes as it dies is no result.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        found: Outcome = ("done", work(*arguments))
    except CasewrightError as error:
        found = ("told", f"{type(error).__name__}: {error}")
    except BaseException as error:  # noqa: BLE001
        found = ("failed", told(error))
    answer.send(found)
    answer.close()


def _name(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"code {code}"
