"""Runs a generator in a blocking or async way, so that sync and async callers share its code.

The generator, called a *body*, yields each piece of work that takes time, and receives the work's
result or exception. ``run`` does the work in the current thread; ``arun`` awaits it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from casewright.tools.deadline import await_within, call_within, start_daemon

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work that takes time.

    Attributes:
        call: The blocking function.
        acall: The async function; without it, ``arun`` calls ``call`` in a daemon thread.
        seconds: The time limit, after which the work is abandoned with a ``TimeoutError``; ``None``
            if the work needs no limit or has its own.
    """

    call: Callable[[], Any]
    acall: Callable[[], Awaitable[Any]] | None = None
    seconds: float | None = None


#: A generator that yields work, and returns a ``Result``.
Body = Generator[Work, Any, Result]


def run(body: Body[Result]) -> Result:
    """Run a body, with its work in this thread, and return the body's result."""
    resume = partial(body.send, None)
    while True:
        try:
            work = resume()
        except StopIteration as end:
            return cast(Result, end.value)
        try:
            resume = partial(body.send, call_within(work.call, work.seconds))
        except BaseException as error:  # noqa: BLE001 - the body handles it
            resume = partial(body.throw, error)


async def arun(body: Body[Result]) -> Result:
    """Run a body without blocking the event loop, and return its result."""
    resume = partial(body.send, None)
    while True:
        try:
            work = resume()
        except StopIteration as end:
            return cast(Result, end.value)
        try:
            future = work.acall() if work.acall else asyncio.wrap_future(start_daemon(work.call))
            result = await (future if work.seconds is None else await_within(future, work.seconds))
            resume = partial(body.send, result)
        except BaseException as error:  # noqa: BLE001 - the body handles it
            resume = partial(body.throw, error)
