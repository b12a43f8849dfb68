"""Events that a run streams."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from casewright.tools import CallContext
from tests.graph.helpers import QUESTION, Given, graph_of, tool

PLAN = """\
s1 = work(seconds=0.05)
s2 = fails()
s3 = work(seconds=0.01, a=s1.value)
s4 = work(seconds=0.01, a=s2.value)
s5 = nothing()
s6 = work(seconds=5)"""
Stream = Callable[[Any, Any], list[Any]]


def streamed(graph: Any, modes: Any) -> list[Any]:
    return list(graph.stream({"question": QUESTION}, stream_mode=modes))


def astreamed(graph: Any, modes: Any) -> list[Any]:
    async def collect() -> list[Any]:
        asked = {"question": QUESTION}
        return [event async for event in graph.astream(asked, stream_mode=modes)]

    return asyncio.run(collect())


@pytest.fixture(params=[streamed, astreamed], ids=["sync", "async"])
def stream(request: pytest.FixtureRequest) -> Stream:
    chosen: Stream = request.param
    return chosen


def work(given: Given, context: CallContext) -> str:
    time.sleep(min(given["seconds"], 0.6))
    return context.step


def fails(given: Given, context: CallContext) -> str:
    raise ValueError("no luck")


def streaming_graph(**limits: Any) -> Any:
    tools = [
        tool("work", work, takes=("seconds", "a")),
        tool("fails", fails),
        tool("nothing", lambda given, context: []),
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
    order = [(event["event"], event.get("step")) for event in events]
    for number in range(1, 7):
        name = f"s{number}"
        assert order.count(("step_ended", name)) == 1
        if name == "s4":
            assert ("step_started", name) not in order, "a skipped step never starts"
            continue
        assert order.count(("step_started", name)) == 1
        assert order.index(("step_started", name)) < order.index(("step_ended", name))
    assert order.index(("step_ended", "s1")) < order.index(("step_started", "s3"))


def test_streamed_events_agree_with_the_answer(stream: Stream) -> None:
    chunks = stream(streaming_graph(), ["custom", "values"])
    events = [chunk for mode, chunk in chunks if mode == "custom"]
    answer = [chunk for mode, chunk in chunks if mode == "values"][-1]["answer"]
    ended = {event["step"]: event for event in events if event["event"] == "step_ended"}
    assert {name: event["status"] for name, event in ended.items()} == {
        "s1": "done",
        "s2": "failed",
        "s3": "done",
        "s4": "skipped",
        "s5": "empty",
        "s6": "timed_out",
    }
    for step in answer["steps"]:
        event = ended[step["step"]]
        assert event["status"] == step["status"]
        assert event["tool"] == step["tool"]
        assert event["error"] == step["error"]
        assert event["results"] == len(step["rows"])
        assert event["milliseconds"] == step["milliseconds"]
    assert events[-1]["text"] == answer["text"]
    assert events[-1]["citations"] == answer["citations"]


def test_stream_yields_events_while_the_plan_runs() -> None:
    events = streaming_graph().stream({"question": QUESTION}, stream_mode="custom")
    at = {}
    for event in events:
        at[event["event"], event.get("step")] = time.perf_counter()
    assert at["answer", None] - at["step_ended", "s2"] > 0.2
    assert at["step_ended", "s6"] - at["step_started", "s6"] > 0.25


def test_astream_yields_events_while_the_plan_runs() -> None:
    async def collect() -> dict[Any, float]:
        at = {}
        async for event in streaming_graph().astream({"question": QUESTION}, stream_mode="custom"):
            at[event["event"], event.get("step")] = time.perf_counter()
        return at

    at = asyncio.run(collect())
    assert at["answer", None] - at["step_ended", "s2"] > 0.2
    assert at["step_ended", "s6"] - at["step_started", "s6"] > 0.25
