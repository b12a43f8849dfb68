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

Result = TypeVar("Result")
#: Seconds that a coroutine may take to clean up after its time limit.
CANCEL_SECONDS = 0.1
MAX_IDLE_THREADS = 64
#: The owner of the calls in this context, such as a tenant; empty for no owner.
owner: contextvars.ContextVar[str] = contextvars.ContextVar("casewright_call_owner", default="")


class _CallThreads:
    """Counts and limits the threads that run calls, in total and for each owner.

    A thread is counted until its call ends, also if the call is abandoned (``abandoned_count``).
    """

    def __init__(self, limit: int, owner_limit: int) -> None:
        self._limit = limit
        self._owner_limit = owner_limit
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self.abandoned_count = 0

    def running(self) -> int:
        with self._lock:
            return self._running.total()

    def start(self, call: Callable[[], None], owner_name: str) -> None:
        with self._lock:
            is_owner_full = bool(owner_name) and self._running[owner_name] >= self._owner_limit
            if is_owner_full or self._running.total() >= self._limit:
                raise BusyError(
                    f"{self._running.total()} threads run calls, {self._running[owner_name]} "
                    "of them for this caller, and no more may start. Wait until some end; set a "
                    "timeout in tools that may hang, or run them in a process."
                )
            self._running[owner_name] += 1
        try:
            _run_in_thread(call)
        except RuntimeError as error:
            self.end(owner_name)
            raise BusyError(f"The system starts no more threads: {error}. Try again.") from error

    def abandon(self, future: _CallFuture) -> None:
        """Count a call as abandoned, once, unless it has ended."""
        with self._lock:
            if not (future.done() or future.is_abandoned):
                future.is_abandoned = True
                self.abandoned_count += 1

    def end(self, owner_name: str, future: _CallFuture | None = None) -> None:
        with self._lock:
            if future is not None and future.is_abandoned:
                self.abandoned_count -= 1
            self._running[owner_name] -= 1
            if not self._running[owner_name]:
                del self._running[owner_name]


class _CallFuture(Future[Any]):
    """The future of a call; ``cancel`` counts the call as abandoned, but the thread goes on."""

    def __init__(self, threads: _CallThreads) -> None:
        super().__init__()
        self.is_abandoned = False
        self._threads = threads

    def cancel(self) -> bool:
        self._threads.abandon(self)
        return super().cancel()


_threads = _CallThreads(limit=1024, owner_limit=1024)
#: The inboxes of idle threads, in the order in which the threads became idle.
_idle_inboxes: deque[SimpleQueue[Callable[[], None]]] = deque()
# A forked process has none of these threads.
os.register_at_fork(after_in_child=_idle_inboxes.clear)


def _run_in_thread(call: Callable[[], None]) -> None:
    """Run a call, which must raise nothing, in an idle daemon thread, or else in a new thread.

    An idle thread is preferred: starting a thread blocks the event loop until the thread runs.
    """
    try:
        inbox = _idle_inboxes.pop()
    except IndexError:
        inbox = SimpleQueue()
        threading.Thread(
            target=_run_calls, args=(inbox,), daemon=True, name="casewright-call"
        ).start()
    inbox.put(call)


def _run_calls(inbox: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        inbox.get()()
        if len(_idle_inboxes) >= MAX_IDLE_THREADS:
            return
        _idle_inboxes.append(inbox)


def running_calls() -> int:
    """Return the number of threads that run calls, including abandoned calls."""
    return _threads.running()


def abandoned_calls() -> int:
    """Return the number of threads that still run an abandoned call."""
    return _threads.abandoned_count


def bound_call_threads(limit: int, owner_limit: int) -> None:
    """Limit the threads for later calls in this process, in total and for each owner."""
    global _threads
    _threads = _CallThreads(limit, owner_limit)


def start_daemon(function: Callable[[], Result]) -> Future[Result]:
    """Run a function in a daemon thread, with this context's variables; return its future.

    Executors of ``concurrent.futures`` wait for their threads when the process ends, so that a
    hanging call would block the end; a daemon thread can be abandoned. A ``StopIteration`` or
    ``StopAsyncIteration`` becomes a ``RuntimeError``, since an awaited future cannot hold a
    ``StopIteration``. Raise ``BusyError`` if too many threads run calls.
    """
    threads, owner_name = _threads, owner.get()
    future = _CallFuture(threads)
    # Mark the future as running, so that ``call`` can set a result even after ``cancel``.
    future.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def call() -> None:
        try:
            result: Any = context.run(function)
        except (StopIteration, StopAsyncIteration) as error:
            stop_error = RuntimeError(f"The call raised {type(error).__name__}.")
            stop_error.__cause__ = error
            future.set_exception(stop_error)
        except BaseException as error:  # noqa: BLE001 - handed to the waiting caller
            future.set_exception(error)
        else:
            future.set_result(result)
        finally:
            threads.end(owner_name, future)

    threads.start(call, owner_name)
    return future


def call_within(function: Callable[[], Result], seconds: float | None) -> Result:
    """Return the result of a function; after ``seconds``, abandon the call with ``TimeoutError``.

    With ``None`` for ``seconds``, the call runs in this thread, without a limit. Raise
    ``BusyError`` if too many threads run calls.
    """
    if seconds is None:
        return function()
    future = start_daemon(function)
    try:
        return future.result(timeout=seconds)
    finally:
        future.cancel()


async def detach(future: asyncio.Future[Any]) -> None:
    """Wait briefly for a cancelled future; detach it from the event loop if it has not ended.

    At its end, ``asyncio.run`` waits for every registered task; a task that does not end must not
    block the process (docs.python.org, Extending asyncio, "Task lifetime support").
    """
    await asyncio.wait({future}, timeout=CANCEL_SECONDS)
    if not future.done() and isinstance(future, asyncio.Task):
        asyncio._unregister_task(future)


async def await_within(awaitable: Awaitable[Result], seconds: float) -> Result:
    """Return the result of an awaitable; after ``seconds``, abandon it with ``TimeoutError``."""
    future = asyncio.ensure_future(awaitable)
    try:
        # ``asyncio.wait_for`` would wait for a task that ignores its cancellation.
        done, _ = await asyncio.wait({future}, timeout=max(seconds, 0.0))
    finally:
        if not future.done():
            future.cancel()
            # Retrieve a later exception: asyncio logs an exception that nobody retrieved.
            future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            await detach(future)
    if not done:
        raise TimeoutError
    return future.result()


_loop_lock = threading.Lock()
#: The id of the process that started the background loop, and the loop.
_loop: tuple[int, asyncio.AbstractEventLoop] | None = None


async def in_background(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine on a background loop, and return its result.

    If this call is cancelled, the coroutine is cancelled too. It may then need seconds to end a
    process or a connection. On the caller's loop, this could be interrupted, since the executor of
    a plan does not wait for a step that exceeds its time limit.
    """
    global _loop
    with _loop_lock:
        # A forked process has the loop, but not the thread that runs it.
        if _loop is None or _loop[0] != os.getpid():
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, daemon=True, name="casewright-loop").start()
            _loop = os.getpid(), loop
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, _loop[1]))
