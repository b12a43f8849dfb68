"""Calls of what others wrote: whatever they raise or how long they take, only the call ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Answer = TypeVar("Answer")
#: How long a timed-out coroutine may take to clean up.
CANCEL_SECONDS = 0.1


@contextmanager
def contained(caller: str) -> Iterator[None]:
    """Make failures of what would end more than the call: the process, or a waiting coroutine."""
    try:
        yield
    except (SystemExit, StopIteration, StopAsyncIteration) as error:
        # Not "from error": contextlib would take that for its own conversion of StopIteration.
        raise RuntimeError(f"{caller} raised {type(error).__name__}") from None


async def let_go(work: asyncio.Future[Any]) -> None:
    """Leave cancelled work to itself where it swallows its cancellation.

    ``asyncio.run`` waits at its end for every task that it knows of; one that will not end must
    not hold the process (docs.python.org, Extending asyncio, "Task lifetime support").
    """
    await asyncio.wait({work}, timeout=CANCEL_SECONDS)
    if not work.done() and isinstance(work, asyncio.Task):
        asyncio._unregister_task(work)


async def await_within(work: Awaitable[Answer], seconds: float) -> Answer:
    """Await something, or abandon it.

    Raises:
        TimeoutError: It did not end within ``seconds``.
    """
    future = asyncio.ensure_future(work)
    try:
        # Not wait_for: what swallows its cancellation would hold whoever waits.
        done, _ = await asyncio.wait({future}, timeout=max(seconds, 0.0))
    finally:
        if not future.done():
            future.cancel()
    if not done:
        await let_go(future)
        raise TimeoutError
    return future.result()
