"""Calls that end in time, whatever they call."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from casewright.tools.call_threads import call_threads, owner

Answer = TypeVar("Answer")
#: How long a timed-out coroutine may take to clean up.
CANCEL_SECONDS = 0.1


def start_daemon(function: Callable[[], Answer]) -> Future[Answer]:
    """Run a function in a thread of its own that nobody has to join, and return its future.

    Executors join their threads when the process ends, so that one hanging call would hold it for
    ever; a daemon thread can be abandoned. Context variables are handed on. A ``StopIteration`` or
    ``StopAsyncIteration`` becomes a ``RuntimeError``: no future that is awaited can hold the first.

    Raises:
        BusyError: So many threads are at work that no more may be begun.
    """
    future: Future[Answer] = Future()
    # Running from the start: who stops waiting cannot cancel it under the thread's hands.
    future.set_running_or_notify_cancel()
    context = contextvars.copy_context()
    threads, whose = call_threads(), owner.get()

    def work() -> None:
        try:
            answer: Any = context.run(function)
        except (StopIteration, StopAsyncIteration) as error:
            stopped = RuntimeError(f"The call raised {type(error).__name__}.")
            stopped.__cause__ = error
            future.set_exception(stopped)
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            future.set_exception(error)
        else:
            future.set_result(answer)
        finally:
            threads.ended(whose)

    threads.start(threading.Thread(target=work, daemon=True, name="casewright-call"), whose)
    return future


def call_within(function: Callable[[], Answer], seconds: float | None) -> Answer:
    """Call a function and return its answer, or abandon it.

    Raises:
        BusyError: So many threads are at work that no more may be begun.
        TimeoutError: It did not return within ``seconds``.
    """
    if seconds is None:
        return function()
    return start_daemon(function).result(timeout=seconds)


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
            # What it raises after that is nobody's any more.
            future.add_done_callback(lambda late: late.cancelled() or late.exception())
            await let_go(future)
    if not done:
        raise TimeoutError
    return future.result()
