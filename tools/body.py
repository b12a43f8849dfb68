"""One body for a blocking call and its async twin.

A body is a generator: it yields each piece of work that takes time, and goes on with what that
returned or raised. The runner does the work by blocking, or by awaiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

from casewright.tools.deadline import await_within, call_within, start_daemon

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work that takes time.

    Attributes:
        call: Does it by blocking.
        acall: Does it on an event loop; without it, ``call`` runs in a daemon thread there.
        seconds: After these it is abandoned, by a ``TimeoutError``; ``None`` where it keeps its own
            deadline.
    """

    call: Callable[[], Any]
    acall: Callable[[], Awaitable[Any]] | None = None
    seconds: float | None = None


Body = Generator[Work, Any, Answer]


def run(body: Body[Answer]) -> Answer:
    """Return what a body returns; its work blocks this thread."""
    step = partial(body.send, None)
    while True:
        try:
            work = step()
        except StopIteration as end:
            return cast(Answer, end.value)
        try:
            step = partial(body.send, call_within(work.call, work.seconds))
        except BaseException as error:  # noqa: BLE001 - the body decides
            step = partial(body.throw, error)


async def arun(body: Body[Answer]) -> Answer:
    """Return what a body returns, without blocking the event loop."""
    step = partial(body.send, None)
    while True:
        try:
            work = step()
        except StopIteration as end:
            return cast(Answer, end.value)
        try:
            future = work.acall() if work.acall else asyncio.wrap_future(start_daemon(work.call))
            answer = await (future if work.seconds is None else await_within(future, work.seconds))
            step = partial(body.send, answer)
        except BaseException as error:  # noqa: BLE001 - the body decides
            step = partial(body.throw, error)
