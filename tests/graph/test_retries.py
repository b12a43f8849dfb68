"""Which errors are retried, and what stays equal between attempts."""

from __future__ import annotations

import time
from typing import Any

import pytest
from langgraph.types import RetryPolicy

from casewright.errors import ToolError
from casewright.tools import CallContext
from tests.graph.helpers import Ask, Given, graph_of, statuses, step_of, tool, values


class Failing:
    """Fails so many times, then succeeds; keeps the keys and times of its calls."""

    def __init__(self, error: BaseException, times: int) -> None:
        self.error = error
        self.times = times
        self.keys: list[str] = []
        self.at: list[float] = []

    def run(self, given: Given, context: CallContext) -> str:
        self.keys.append(context.key)
        self.at.append(time.perf_counter())
        if len(self.keys) <= self.times:
            raise self.error
        return "there"

    async def arun(self, given: Given, context: CallContext) -> str:
        return self.run(given, context)


def one_step(failing: Failing, native: bool = False, **limits: Any) -> Any:
    run_async: Any = failing.arun if native else None
    return graph_of([tool("t", failing.run, run_async)], "s1 = t()", **limits)


@pytest.mark.parametrize("native", [False, True], ids=["blocking tool", "async tool"])
def test_step_is_retried_after_a_connection_error_until_it_succeeds(ask: Ask, native: bool) -> None:
    failing = Failing(ConnectionError("reset"), 2)
    answer = ask(one_step(failing, native))
    assert values(answer) == {"s1": ["there"]}
    assert step_of(answer, "s1")["attempts"] == len(failing.keys) == 3


@pytest.mark.parametrize("native", [False, True], ids=["blocking tool", "async tool"])
def test_step_makes_no_more_attempts_than_the_policy_allows(ask: Ask, native: bool) -> None:
    failing = Failing(ConnectionError("reset"), 99)
    answer = ask(one_step(failing, native))
    assert statuses(answer) == {"s1": "failed"}
    assert len(failing.keys) == 3
    assert step_of(answer, "s1")["error"] == "t failed: ConnectionError: reset"


@pytest.mark.parametrize("native", [False, True], ids=["blocking tool", "async tool"])
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
    ask: Ask, error: Exception, native: bool
) -> None:
    failing = Failing(error, 99)
    answer = ask(one_step(failing, native, step_seconds=2.0))
    assert statuses(answer) == {"s1": "failed"}
    assert len(failing.keys) == 1


def test_tool_that_raises_system_exit_fails_only_its_step(ask: Ask) -> None:
    tools = [tool("leaves", Failing(SystemExit(3), 9).run), tool("find", lambda g, c: "there")]
    try:
        answer = ask(graph_of(tools, "s1 = leaves()\ns2 = find()"))
    except SystemExit:
        pytest.fail("the tool's SystemExit ended the run")
    assert statuses(answer) == {"s1": "failed", "s2": "done"}


def test_tool_error_is_not_retried_even_when_the_policy_names_it(ask: Ask) -> None:
    failing = Failing(ToolError("wrongly declared"), 1)
    policy = RetryPolicy(max_attempts=3, initial_interval=0.01, retry_on=ToolError)
    assert statuses(ask(one_step(failing, retry=policy))) == {"s1": "failed"}
    assert len(failing.keys) == 1


@pytest.mark.parametrize(
    "retry_on",
    [KeyError, (OSError, KeyError), lambda error: "reset" in str(error)],
    ids=["a class", "several", "a function"],
)
def test_retry_policy_determines_which_errors_are_retried(ask: Ask, retry_on: Any) -> None:
    policy = RetryPolicy(max_attempts=2, initial_interval=0.01, retry_on=retry_on)
    again, at_once = Failing(KeyError("reset"), 1), Failing(ValueError("bad"), 1)
    assert statuses(ask(one_step(again, retry=policy))) == {"s1": "done"}
    assert statuses(ask(one_step(at_once, retry=policy))) == {"s1": "failed"}
    assert (len(again.keys), len(at_once.keys)) == (2, 1)


@pytest.mark.parametrize("native", [False, True], ids=["blocking tool", "async tool"])
def test_waits_between_attempts_follow_the_retry_policy(ask: Ask, native: bool) -> None:
    failing = Failing(ConnectionError("reset"), 3)
    policy = RetryPolicy(
        max_attempts=4, initial_interval=0.1, backoff_factor=4.0, max_interval=0.3, jitter=False
    )
    ask(one_step(failing, native, retry=policy))
    waits = [after - before for before, after in zip(failing.at, failing.at[1:], strict=False)]
    assert len(waits) == 3
    # Without the bound the third would be 1.6 s; a busy machine makes them longer.
    assert 0.099 < waits[0] < 0.29
    assert all(0.299 < wait < 1.2 for wait in waits[1:])


def test_call_key_is_equal_across_attempts_and_differs_between_steps_and_runs(ask: Ask) -> None:
    failing = Failing(ConnectionError("reset"), 2)
    other = Failing(ConnectionError("reset"), 0)
    tools = [tool("t", failing.run), tool("u", other.run)]
    graph = graph_of(tools, "s1 = t()\ns2 = u()\ns3 = u()")
    first = ask(graph)
    keys = {*failing.keys, *other.keys}
    assert len(failing.keys) == 3
    assert len(set(failing.keys)) == 1
    assert len(keys) == 3
    assert all(first.run_id in key for key in keys)
    again = ask(graph)
    assert again.run_id != first.run_id
    assert failing.keys[3] not in keys
