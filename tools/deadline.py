"""Calls with a time limit: in daemon threads, and on a background event loop."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from casewright.errors import BusyError

Answer = TypeVar("Answer")
#: Seconds that a coroutine may take to clean up after its time limit.
CANCEL_SECONDS = 0.1
#: Maximum number of idle threads that are kept for further calls.
MAX_IDLE = 64
#: The owner of the calls in this context, such as a tenant; empty for no owner.
owner: contextvars.ContextVar[str] = contextvars.ContextVar("casewright_call_owner", default="")


class _CallThreads:
    """Limits of the threads that run calls and are never joined, in total and for each owner.

    A thread counts until it ends, even if its call was abandoned.
    """

    def __init__(self, limit: int, owner_limit: int) -> None:
        self._limit = limit
        self._owner_limit = owner_limit
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self.abandoned = 0

    def running(self) -> int:
        with self._lock:
            return self._running.total()

    def start(self, work: Callable[[], None], name: str) -> None:
        with self._lock:
            owner_full = self._running[name] >= self._owner_limit and name
            if owner_full or self._running.total() >= self._limit:
                raise BusyError(
                    f"{self._running.total()} threads run calls, {self._running[name]} "
                    "of them for this caller, and no more may start. Wait until some end; give "
                    "tools that hang a timeout of their own, or run them in a process."
                )
            self._running[name] += 1
        try:
            _in_thread(work)
        except RuntimeError as error:
            self.end(name)
            raise BusyError(f"The system starts no more threads: {error}. Try again.") from error

    def abandon(self, call: _CallFuture) -> None:
        with self._lock:
            if not (call.done() or call.abandoned):
                call.abandoned = True
                self.abandoned += 1

    def end(self, name: str, call: _CallFuture | None = None) -> None:
        with self._lock:
            if call is not None and call.abandoned:
                self.abandoned -= 1
            self._running[name] -= 1
            if not self._running[name]:
                del self._running[name]


class _CallFuture(Future[Any]):
    """The future of a call; cancelling it ends the wait, but not the thread."""

    def __init__(self, threads: _CallThreads) -> None:
        super().__init__()
        self.abandoned = False
        self._threads = threads

    def cancel(self) -> bool:
        self._threads.abandon(self)
        return super().cancel()


_threads = _CallThreads(1024, 1024)
#: The inboxes of idle threads; the thread that became idle last is on the right.
_idle: deque[SimpleQueue[Callable[[], None]]] = deque()
# A forked process has none of these threads.
os.register_at_fork(after_in_child=_idle.clear)


def _in_thread(work: Callable[[], None]) -> None:
    """Run work, which raises nothing, in an idle daemon thread, or else in a new thread.

    The start of a new thread blocks the calling event loop until the thread runs.
    """
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = SimpleQueue()
        threading.Thread(target=_serve, args=(inbox,), daemon=True, name="casewright-call").start()
    inbox.put(work)


def _serve(inbox: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        inbox.get()()
        if len(_idle) >= MAX_IDLE:
            return
        _idle.append(inbox)


def running_calls() -> int:
    """Return the number of threads that run calls, including abandoned calls."""
    return _threads.running()


def abandoned_calls() -> int:
    """Return the number of threads that still run an abandoned call."""
    return _threads.abandoned


def bound_call_threads(limit: int, owner_limit: int) -> None:
    """Limit the new threads of this process that run calls, in total and for one owner."""
    global _threads
    _threads = _CallThreads(limit, owner_limit)


def start_daemon(function: Callable[[], Answer]) -> Future[Answer]:
    """Run a function in a daemon thread, with this context's variables; return its future.

    Executors join their threads when the process ends, so one hanging call would block the end
    forever; a daemon thread can be abandoned. A ``StopIteration`` or ``StopAsyncIteration`` becomes
    a ``RuntimeError``, since an awaited future cannot hold a ``StopIteration``. Raise ``BusyError``
    if too many threads run calls.
    """
    threads, name = _threads, owner.get()
    future = _CallFuture(threads)
    # Mark the future as running, so that a caller that stops waiting cannot cancel it.
    future.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            answer: Any = context.run(function)
        except (StopIteration, StopAsyncIteration) as error:
            stopped = RuntimeError(f"The call raised {type(error).__name__}.")
            stopped.__cause__ = error
            future.set_exception(stopped)
        except BaseException as error:  # noqa: BLE001 - handed to the waiting caller
            future.set_exception(error)
        else:
            future.set_result(answer)
        finally:
            threads.end(name, future)

    threads.start(work, name)
    return future


def call_within(function: Callable[[], Answer], seconds: float | None) -> Answer:
    """Return the result of a function, or abandon the call at its time limit.

    Raises:
        BusyError: Too many threads run calls.
        TimeoutError: The function did not return within ``seconds``.
    """
    if seconds is None:
        return function()
    future = start_daemon(function)
    try:
        return future.result(timeout=seconds)
    finally:
        future.cancel()


async def let_go(work: asyncio.Future[Any]) -> None:
    """Detach cancelled work from the event loop, in case it ignores the cancellation.

    ``asyncio.run`` waits at its end for every registered task; a task that does not end must not
    block the process (docs.python.org, Extending asyncio, "Task lifetime support").
    """
    await asyncio.wait({work}, timeout=CANCEL_SECONDS)
    if not work.done() and isinstance(work, asyncio.Task):
        asyncio._unregister_task(work)


async def await_within(work: Awaitable[Answer], seconds: float) -> Answer:
    """Return the result of an awaitable, or abandon it at its time limit.

    Raise ``TimeoutError`` if the awaitable did not end within ``seconds``.
    """
    future = asyncio.ensure_future(work)
    try:
        # Do not use wait_for: it would wait for a task that ignores its cancellation.
        done, _ = await asyncio.wait({future}, timeout=max(seconds, 0.0))
    finally:
        if not future.done():
            future.cancel()
            # Retrieve a later exception, which nobody reads.
            future.add_done_callback(lambda late: late.cancelled() or late.exception())
            await let_go(future)
    if not done:
        raise TimeoutError
    return future.result()


_loop_lock = threading.Lock()
_loop: tuple[int, asyncio.AbstractEventLoop] | None = None


async def in_background(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Return the result of a coroutine on a background loop; a cancellation cancels it too.

    Ending a process or a connection may take seconds. The caller's loop would interrupt it: the
    executor does not wait for a step that exceeds its time limit, and its loop may end immediately.
    """
    global _loop
    with _loop_lock:
        # A forked process has the loop, but not the thread that runs it.
        if _loop is None or _loop[0] != os.getpid():
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, daemon=True, name="casewright-loop").start()
            _loop = os.getpid(), loop
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop[1]))
