"""A step that takes too long times out, and the run answers from the other steps."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from langgraph.types import RetryPolicy

from casewright.graph import Answer
from casewright.tools import CallContext
from tests.graph.helpers import Ask, fresh_process, graph_of, statuses, step_of, tool, values

RELEASE = threading.Event()
PLAN = """\
s1 = find()
s2 = slow()
s3 = find(a=s1.value)
s4 = find(a=s2.value)"""


def find(arguments: Any, context: CallContext) -> str:
    return f"found by {context.step}"


def block(arguments: Any, context: CallContext) -> str:
    time.sleep(1.2)
    return "late"


def hang(arguments: Any, context: CallContext) -> str:
    RELEASE.wait()
    return "never"


async def pause(arguments: Any, context: CallContext) -> str:
    await asyncio.sleep(60)
    return "late"


async def swallow(arguments: Any, context: CallContext) -> str:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        await asyncio.sleep(1)
    return "late"


@pytest.mark.parametrize(
    ("run", "run_async"),
    [(block, None), (hang, None), (None, pause), (hang, pause), (None, swallow)],
    ids=["sleeps", "hangs for ever", "async", "both", "swallows its cancellation"],
)
def test_slow_step_times_out_and_the_other_steps_are_answered(
    ask: Ask, run: Any, run_async: Any
) -> None:
    graph = graph_of([tool("find", find), tool("slow", run, run_async)], PLAN, step_seconds=0.3)
    start = time.perf_counter()
    if ask.mode == "async":
        seconds, answer = asyncio.run(run_timed(graph))
    else:
        answer = ask(graph)
        seconds = time.perf_counter() - start
    assert 0.29 < seconds < 3.0
    assert statuses(answer) == {"s1": "done", "s2": "timed_out", "s3": "done", "s4": "skipped"}
    assert values(answer)["s3"] == ["found by s3"]
    assert [item["text"] for item in answer.evidence] == ["found by s1", "found by s3"]
    assert "found by s3" in answer.text
    assert answer.missing == [
        "s2 (slow) took too long. It took longer than 0.3 s.",
        "s4 (find) was skipped. It needs s2 (slow), which ended timed_out.",
    ]
    assert all(sentence in answer.text for sentence in answer.missing)
    assert step_of(answer, "s2")["rows"] == []


async def run_timed(graph: Any) -> tuple[float, Any]:
    """Return seconds and answer of the run, before the event loop closes and cancels again."""
    start = time.perf_counter()
    state = await graph.ainvoke({"question": "what"})
    return time.perf_counter() - start, Answer.from_state(state)


def test_step_time_limit_includes_retries(ask: Ask) -> None:
    calls: list[float] = []

    def fail(arguments: Any, context: CallContext) -> str:
        calls.append(time.perf_counter())
        time.sleep(0.15)
        raise ConnectionError("again")

    policy = RetryPolicy(max_attempts=50, initial_interval=0.01, backoff_factor=1.0)
    graph = graph_of([tool("fails", fail)], "s1 = fails()", step_seconds=0.5, retry=policy)
    answer = ask(graph)
    assert statuses(answer) == {"s1": "timed_out"}
    assert step_of(answer, "s1")["milliseconds"] < 3000
    time.sleep(0.4)
    assert len(calls) <= 4, "an abandoned call was tried again"


EXIT_SCRIPT = """
import asyncio, sys, threading, time
from casewright.graph import Answer
from tests.graph.helpers import QUESTION, graph_of, statuses, tool

def hangs(given, context):
    threading.Event().wait()

async def swallows(given, context):
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

async def blocks(given, context):
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        return "cancelled"

run = {"hangs": (hangs, None), "swallows": (None, swallows), "cancels": (None, blocks)}
slow = tool("slow", *run[sys.argv[2]])
plan = "s1 = slow()\\ns2 = find()"
graph = graph_of([slow, tool("find", lambda *_: "there")], plan, step_seconds=0.3)
if sys.argv[1] == "sync":
    state = graph.invoke({"question": QUESTION})
else:
    state = asyncio.run(graph.ainvoke({"question": QUESTION}))
print(statuses(Answer.from_state(state)))
"""


@pytest.mark.parametrize("kind", ["hangs", "cancels", "swallows"])
def test_process_exits_after_the_answer_when_a_tool_hangs(ask: Ask, kind: str) -> None:
    process = fresh_process(EXIT_SCRIPT, ask.mode, kind, seconds=8)
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() == "{'s1': 'timed_out', 's2': 'done'}"


LATE_SCRIPT = """
import asyncio, sys, time
from casewright.graph import Answer
from tests.graph.helpers import QUESTION, graph_of, statuses, tool

def late(given, context):
    time.sleep(0.6)
    if context.step == "s1":
        raise OSError("late")
    return "late"

graph = graph_of([tool("late", late)], "s1 = late()\\ns2 = late()", step_seconds=0.2)
if sys.argv[1] == "sync":
    state = graph.invoke({"question": QUESTION})
else:
    state = asyncio.run(graph.ainvoke({"question": QUESTION}))
print(statuses(Answer.from_state(state)))
time.sleep(0.8)
"""


def test_calls_that_end_after_their_timeout_write_no_error(ask: Ask) -> None:
    process = fresh_process(LATE_SCRIPT, ask.mode)
    assert process.stdout.strip() == "{'s1': 'timed_out', 's2': 'timed_out'}"
    assert process.stderr == ""


def test_step_that_times_out_between_two_attempts_is_not_called_again(ask: Ask) -> None:
    calls: list[str] = []

    def fail(arguments: Any, context: CallContext) -> str:
        calls.append(context.key)
        raise ConnectionError("again")

    policy = RetryPolicy(max_attempts=5, initial_interval=30.0)
    graph = graph_of([tool("fails", fail)], "s1 = fails()", step_seconds=0.3, retry=policy)
    assert statuses(ask(graph)) == {"s1": "timed_out"}
    time.sleep(0.3)
    assert len(calls) == 1
