"""Events that a run streams."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from casewright.tools import CallContext
from tests.graph.helpers import QUESTION, Arguments, graph_of, tool

PLAN = """\
s1 = work(seconds=0.05)
s2 = fails()
s3 = work(seconds=0.01, a=s1.value)
s4 = work(seconds=0.01, a=s2.value)
s5 = nothing()
s6 = work(seconds=5)"""
Stream = Callable[[Any, Any], list[Any]]


def stream_events(graph: Any, modes: Any) -> list[Any]:
    return list(graph.stream({"question": QUESTION}, stream_mode=modes))


def astream_events(graph: Any, modes: Any) -> list[Any]:
    async def collect() -> list[Any]:
        inputs = {"question": QUESTION}
        return [event async for event in graph.astream(inputs, stream_mode=modes)]

    return asyncio.run(collect())


@pytest.fixture(params=[stream_events, astream_events], ids=["sync", "async"])
def stream(request: pytest.FixtureRequest) -> Stream:
    function: Stream = request.param
    return function


def work(arguments: Arguments, context: CallContext) -> str:
    time.sleep(min(arguments["seconds"], 0.6))
    return context.step


def fail(arguments: Arguments, context: CallContext) -> str:
    raise ValueError("no luck")


def streaming_graph(**limits: Any) -> Any:
    tools = [
        tool("work", work, takes=("seconds", "a")),
        tool("fails", fail),
        tool("nothing", lambda *_: []),
    ]
    return graph_of(tools, PLAN, step_seconds=0.3, **limits)


def test_stream_starts_with_the_plan_and_ends_with_the_answer(stream: Stream) -> None:
    events = stream(streaming_graph(), "custom")
    kinds = [event["event"] for event in events]
    assert kinds[0] == "plan"
    assert events[0]["plan"] == PLAN
    assert events[0]["planner"]["name"] == "fixed"
    assert kinds[-1] == "answer"
    assert kinds.count("plan") == kinds.count("answer") == 1
    assert set(kinds) == {"plan", "step_started", "step_ended", "answer"}
    json.dumps(events)


def test_stream_contains_start_and_end_of_each_step_once_in_order(
    stream: Stream,
) -> None:
    events = stream(streaming_graph(), "custom")
    pairs = [(event["event"], event.get("step")) for event in events]
    for number in range(1, 7):
        name = f"s{number}"
        assert pairs.count(("step_ended", name)) == 1
        if name == "s4":
            assert ("step_started", name) not in pairs, "a skipped step started"
            continue
        assert pairs.count(("step_started", name)) == 1
        assert pairs.index(("step_started", name)) < pairs.index(("step_ended", name))
    assert pairs.index(("step_ended", "s1")) < pairs.index(("step_started", "s3"))


def test_streamed_events_agree_with_the_answer(stream: Stream) -> None:
    chunks = stream(streaming_graph(), ["custom", "values"])
    events = [chunk for mode, chunk in chunks if mode == "custom"]
    answer = [chunk for mode, chunk in chunks if mode == "values"][-1]["answer"]
    end_events = {event["step"]: event for event in events if event["event"] == "step_ended"}
    assert {name: event["status"] for name, event in end_events.items()} == {
        "s1": "done",
        "s2": "failed",
        "s3": "done",
        "s4": "skipped",
        "s5": "empty",
        "s6": "timed_out",
    }
    for step in answer["steps"]:
        event = end_events[step["step"]]
        assert event["status"] == step["status"]
        assert event["tool"] == step["tool"]
        assert event["error"] == step["error"]
        assert event["results"] == len(step["rows"])
        assert event["milliseconds"] == step["milliseconds"]
    assert events[-1]["text"] == answer["text"]
    assert events[-1]["citations"] == answer["citations"]


def test_stream_yields_events_while_the_plan_runs() -> None:
    events = streaming_graph().stream({"question": QUESTION}, stream_mode="custom")
    times = {}
    for event in events:
        times[event["event"], event.get("step")] = time.perf_counter()
    assert times["answer", None] - times["step_ended", "s2"] > 0.2
    assert times["step_ended", "s6"] - times["step_started", "s6"] > 0.25


def test_astream_yields_events_while_the_plan_runs() -> None:
    async def collect() -> dict[Any, float]:
        times = {}
        async for event in streaming_graph().astream({"question": QUESTION}, stream_mode="custom"):
            times[event["event"], event.get("step")] = time.perf_counter()
        return times

    times = asyncio.run(collect())
    assert times["answer", None] - times["step_ended", "s2"] > 0.2
    assert times["step_ended", "s6"] - times["step_started", "s6"] > 0.25
