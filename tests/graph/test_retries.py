"""Errors that are retried, and call keys that stay equal between attempts."""

from __future__ import annotations

import time
from typing import Any

import pytest
from langgraph.types import RetryPolicy

from casewright.errors import ToolError
from casewright.tools import CallContext
from tests.graph.helpers import Arguments, Ask, graph_of, statuses, step_of, tool, values


class Failing:
    """A tool that fails a number of times, then succeeds; it records keys and times of calls."""

    def __init__(self, error: BaseException, failures: int) -> None:
        self.error = error
        self.failures = failures
        self.keys: list[str] = []
        self.times: list[float] = []

    def run(self, arguments: Arguments, context: CallContext) -> str:
        self.keys.append(context.key)
        self.times.append(time.perf_counter())
        if len(self.keys) <= self.failures:
            raise self.error
        return "there"

    async def arun(self, arguments: Arguments, context: CallContext) -> str:
        return self.run(arguments, context)


def one_step_graph(failing: Failing, is_async: bool = False, **limits: Any) -> Any:
    run_async: Any = failing.arun if is_async else None
    return graph_of([tool("t", failing.run, run_async)], "s1 = t()", **limits)


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking tool", "async tool"])
def test_step_is_retried_after_connection_errors_until_success(ask: Ask, is_async: bool) -> None:
    failing = Failing(ConnectionError("reset"), 2)
    answer = ask(one_step_graph(failing, is_async))
    assert values(answer) == {"s1": ["there"]}
    assert step_of(answer, "s1")["attempts"] == len(failing.keys) == 3


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking tool", "async tool"])
def test_step_makes_no_more_attempts_than_the_policy_allows(ask: Ask, is_async: bool) -> None:
    failing = Failing(ConnectionError("reset"), 99)
    answer = ask(one_step_graph(failing, is_async))
    assert statuses(answer) == {"s1": "failed"}
    assert len(failing.keys) == 3
    assert step_of(answer, "s1")["error"] == "t failed: ConnectionError: reset"


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking tool", "async tool"])
@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad"),
        TypeError("bad"),
        KeyError("bad"),
        ToolError("bad"),
        StopIteration(),
        StopAsyncIteration(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_step_is_not_retried_after_a_permanent_error(
    ask: Ask, error: Exception, is_async: bool
) -> None:
    failing = Failing(error, 99)
    answer = ask(one_step_graph(failing, is_async, step_seconds=2.0))
    assert statuses(answer) == {"s1": "failed"}
    assert len(failing.keys) == 1


def test_tool_that_raises_system_exit_fails_only_its_step(ask: Ask) -> None:
    tools = [tool("leaves", Failing(SystemExit(3), 9).run), tool("find", lambda *_: "there")]
    try:
        answer = ask(graph_of(tools, "s1 = leaves()\ns2 = find()"))
    except SystemExit:
        pytest.fail("the tool's SystemExit ended the run")
    assert statuses(answer) == {"s1": "failed", "s2": "done"}


def test_tool_error_is_not_retried_even_when_the_policy_names_it(ask: Ask) -> None:
    failing = Failing(ToolError("wrongly declared"), 1)
    policy = RetryPolicy(max_attempts=3, initial_interval=0.01, retry_on=ToolError)
    assert statuses(ask(one_step_graph(failing, retry=policy))) == {"s1": "failed"}
    assert len(failing.keys) == 1


@pytest.mark.parametrize(
    "retry_on",
    [KeyError, (OSError, KeyError), lambda error: "reset" in str(error)],
    ids=["a class", "several", "a function"],
)
def test_retry_policy_determines_which_errors_are_retried(ask: Ask, retry_on: Any) -> None:
    policy = RetryPolicy(max_attempts=2, initial_interval=0.01, retry_on=retry_on)
    retried, not_retried = Failing(KeyError("reset"), 1), Failing(ValueError("bad"), 1)
    assert statuses(ask(one_step_graph(retried, retry=policy))) == {"s1": "done"}
    assert statuses(ask(one_step_graph(not_retried, retry=policy))) == {"s1": "failed"}
    assert (len(retried.keys), len(not_retried.keys)) == (2, 1)


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking tool", "async tool"])
def test_waits_between_attempts_follow_the_retry_policy(ask: Ask, is_async: bool) -> None:
    failing = Failing(ConnectionError("reset"), 3)
    policy = RetryPolicy(
        max_attempts=4, initial_interval=0.1, backoff_factor=4.0, max_interval=0.3, jitter=False
    )
    ask(one_step_graph(failing, is_async, retry=policy))
    waits = [end - start for start, end in zip(failing.times, failing.times[1:], strict=False)]
    assert len(waits) == 3
    # Without max_interval, the third wait would be 1.6 s. A busy machine lengthens waits.
    assert 0.099 < waits[0] < 0.29
    assert all(0.299 < wait < 1.2 for wait in waits[1:])


def test_call_key_is_equal_across_attempts_and_differs_between_steps_and_runs(ask: Ask) -> None:
    failing = Failing(ConnectionError("reset"), 2)
    succeeding = Failing(ConnectionError("reset"), 0)
    tools = [tool("t", failing.run), tool("u", succeeding.run)]
    graph = graph_of(tools, "s1 = t()\ns2 = u()\ns3 = u()")
    first = ask(graph)
    keys = {*failing.keys, *succeeding.keys}
    assert len(failing.keys) == 3
    assert len(set(failing.keys)) == 1
    assert len(keys) == 3
    assert all(first.run_id in key for key in keys)
    second = ask(graph)
    assert second.run_id != first.run_id
    assert failing.keys[3] not in keys
