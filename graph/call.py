"""Tool calls with a deadline and retries; each call ends with exactly one outcome."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from langgraph.errors import GraphBubbleUp
from langgraph.types import RetryPolicy

from casewright.errors import ToolError, cleaned, one_line
from casewright.graph.limits import Limits
from casewright.graph.outcome import Outcome, Status
from casewright.tools import CallContext, ToolSpec, rows
from casewright.tools.body import Body, Work, arun, run
from casewright.tools.deadline import await_within, detach, start_daemon
from casewright.tools.results import plain

Row = Mapping[str, Any]
#: In a synchronous run, seconds from a call's timeout to the cancellation of its coroutine.
_GRACE_SECONDS = 5.0


@dataclass
class Call:
    """A call of a tool with resolved arguments.

    ``run`` or ``arun`` calls the tool, then sets ``rows`` or ``error``. ``reports`` has the reports
    of the last attempt, and ``on_report`` gets each report as soon as the tool makes it. A failed
    attempt is repeated only if ``may_retry`` returns true.
    """

    tool: ToolSpec
    arguments: Mapping[str, Any]
    context: CallContext
    limits: Limits
    rows: Sequence[Row] = ()
    error: str = ""
    timed_out: bool = False
    attempts: int = 0
    reports: list[Row] = field(default_factory=list)
    on_report: Callable[[Row], None] = field(default=lambda report: None)
    may_retry: Callable[[], bool] = field(default=lambda: True)
    _abandoned: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Call the tool from a thread that may block.

        The tool runs in a daemon thread: if it hangs, the thread is abandoned and blocks neither
        the run nor the end of the process.
        """
        future = start_daemon(lambda: run(self._run_attempts()))
        done, _ = wait_for_futures([future], self.limits.step_seconds)
        future.cancel()
        self._finish(future, in_time=bool(done))

    async def arun(self) -> None:
        """Call the tool from an event loop; a synchronous tool runs in a daemon thread."""
        future: asyncio.Future[Sequence[Row]]
        if self.tool.run_async is not None:
            future = asyncio.ensure_future(arun(self._run_attempts()))
        else:
            future = asyncio.wrap_future(start_daemon(lambda: run(self._run_attempts())))
        try:
            # ``asyncio.wait_for`` would wait for a tool that suppresses its cancellation.
            done, _ = await asyncio.wait({future}, timeout=self.limits.step_seconds)
        finally:
            if not future.done():
                self._abandoned.set()
                future.cancel()
        if not done:
            await detach(future)
        self._finish(future, in_time=bool(done))

    def outcome(self, step: str, *, started: float, plan_started: float) -> Outcome:
        """Return the outcome of the call's step; times are values of ``perf_counter``."""
        # A tool that declares no result fields is done even if it returns no rows.
        status: Status = "done" if self.rows or not self.tool.results else "empty"
        if self.error:
            status = "timed_out" if self.timed_out else "failed"
        return Outcome(
            step=step,
            tool=self.tool.name,
            status=status,
            arguments=self.arguments,
            rows=self.rows,
            error=self.error,
            attempts=self.attempts,
            started=round((started - plan_started) * 1000, 3),
            milliseconds=elapsed_ms(started),
            reports=tuple(self.reports),
        )

    def _finish(
        self, future: Future[Sequence[Row]] | asyncio.Future[Sequence[Row]], *, in_time: bool
    ) -> None:
        if not in_time:
            self._abandoned.set()
            self.timed_out = True
            self.error = f"It took longer than {self.limits.step_seconds:g} s."
            return
        try:
            self.rows = future.result()
        except GraphBubbleUp:
            # An interrupt is a question to the user, not a failure of the tool.
            raise
        except ToolError as error:
            self.error = cleaned(str(error))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - tools raise anything
            self.error = f"{self.tool.name} failed: {one_line(error)}"

    def _run_attempts(self) -> Body[Sequence[Row]]:
        """Return the rows of the first attempt that succeeds."""
        policy = self.limits.retry
        while True:
            self.attempts += 1
            self.reports.clear()
            try:
                with exits_as_errors(self.tool.name):
                    arguments = deepcopy(dict(self.arguments))
                    return_value = yield Work(
                        partial(self._call_tool, arguments), partial(self._acall_tool, arguments)
                    )
                    return self._cut_rows(return_value)
            except Exception as error:
                is_final = self._abandoned.is_set() or self.attempts >= policy.max_attempts
                is_final = is_final or isinstance(error, (GraphBubbleUp, ToolError))
                if is_final or not _is_retryable(policy, error) or not self.may_retry():
                    raise
            pause = policy.initial_interval * policy.backoff_factor ** (self.attempts - 1)
            pause = min(pause, policy.max_interval)
            if (yield Work(partial(self._abandoned.wait, pause), partial(asyncio.sleep, pause))):
                # The call was abandoned during the pause, so another attempt would be of no use.
                raise TimeoutError

    @property
    def _attempt_context(self) -> CallContext:
        """Return the tool's context, with a ``report`` function for this attempt."""
        attempt = self.attempts

        def report(event: Row) -> None:
            try:
                record = json.loads(json.dumps(plain(dict(event)), allow_nan=False))
            except (TypeError, ValueError, RecursionError) as error:
                raise ToolError(
                    f"Tool {self.tool.name!r} reported what JSON cannot hold: {error}."
                ) from error
            # Reports of an abandoned attempt are ignored; ``rows`` also limits the reports.
            if self._abandoned.is_set() or attempt != self.attempts:
                return
            if len(self.reports) < self.limits.rows:
                self.reports.append(record)
                self.on_report(record)

        return replace(self.context, report=report)

    def _call_tool(self, arguments: Mapping[str, Any]) -> Any:
        if self.tool.run is not None:
            return self.tool.run(arguments, self._attempt_context)
        if self.tool.run_async is not None:
            # Some seconds after the timeout, the coroutine is cancelled, and can clean up.
            coroutine = self.tool.run_async(arguments, self._attempt_context)
            return asyncio.run(await_within(coroutine, self.limits.step_seconds + _GRACE_SECONDS))
        raise ToolError(
            f"Tool {self.tool.name!r} was declared for planning only and cannot be called. "
            "Give it run= or run_async=."
        )

    async def _acall_tool(self, arguments: Mapping[str, Any]) -> Any:
        assert self.tool.run_async is not None
        return await self.tool.run_async(arguments, self._attempt_context)

    def _cut_rows(self, return_value: Any) -> Sequence[Row]:
        results = rows(self.tool, return_value)[: self.limits.rows]
        return [{name: self._cut(value) for name, value in row.items()} for row in results]

    def _cut(self, value: Any) -> Any:
        if isinstance(value, str) and len(value) > self.limits.characters:
            return value[: self.limits.characters] + " …"
        if isinstance(value, list):
            return [self._cut(item) for item in value[: self.limits.rows]]
        if isinstance(value, dict):
            return {name: self._cut(item) for name, item in value.items()}
        return value


def _is_retryable(policy: RetryPolicy, error: Exception) -> bool:
    retry_on: Any = policy.retry_on
    if isinstance(retry_on, (type, Sequence)):
        return isinstance(error, retry_on if isinstance(retry_on, type) else tuple(retry_on))
    return bool(retry_on(error))


@contextmanager
def exits_as_errors(caller: str) -> Iterator[None]:
    """Raise ``RuntimeError`` instead of an exception that would end the process or a coroutine."""
    try:
        yield
    except (SystemExit, StopIteration, StopAsyncIteration) as error:
        # If StopIteration were the cause, contextlib would raise StopIteration instead.
        raise RuntimeError(f"{caller} raised {type(error).__name__}") from None


def elapsed_ms(started: float) -> float:
    """Return the milliseconds since a ``time.perf_counter`` value, to the microsecond."""
    return round((time.perf_counter() - started) * 1000, 3)
