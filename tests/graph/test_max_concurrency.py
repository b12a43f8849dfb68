"""LangGraph's own ``max_concurrency`` takes threads from the steps: an error, never a hang."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.graph.helpers import fresh_process

TRY = """
import asyncio, json, sys
from casewright.errors import InputError
from tests.graph.helpers import QUESTION, graph_of, tool

tools = [tool("t", lambda g, c: c.step)]
plan = "s1 = t()\\ns2 = t(a=s1.value)\\ns3 = t()\\ns4 = t(a=s2.value, b=s3.value)\\ns5 = t()"
graph = graph_of(tools, plan)
asked = {"question": QUESTION}
how, both = sys.argv[1], ["custom", "values"]

async def astream(config):
    return [part async for part in graph.astream(asked, config, stream_mode="values")][-1]

runs = {
    "invoke": lambda config: graph.invoke(asked, config),
    "stream": lambda config: list(graph.stream(asked, config, stream_mode="values"))[-1],
    "custom": lambda config: list(graph.stream(asked, config, stream_mode=both))[-1][1],
    "ainvoke": lambda config: asyncio.run(graph.ainvoke(asked, config)),
    "astream": lambda config: asyncio.run(astream(config)),
}
for value in sys.argv[2:]:
    try:
        state = runs[how]({"max_concurrency": int(value)})
        print(json.dumps([step["status"] for step in state["answer"]["steps"]]), flush=True)
    except InputError as error:
        print(json.dumps(str(error)), flush=True)
"""


def tried(how: str, *values: str) -> list[Any]:
    """What came of it for each value: the steps' statuses, or our error's text."""
    ended = fresh_process(TRY, how, *values, seconds=12)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.mark.parametrize("how", ["invoke", "stream"])
def test_too_few_threads_are_refused_rather_than_waited_for(how: str) -> None:
    for value, told in zip("12", tried(how, "1", "2"), strict=True):
        assert isinstance(told, str), f"it ran: {told}"
        assert told.startswith(f"max_concurrency={value} ")
        assert "Limits(concurrency=" in told


@pytest.mark.parametrize("how", ["invoke", "custom"])
def test_few_threads_are_enough_or_refused_and_never_a_hang(how: str) -> None:
    for value, told in zip("345", tried(how, "3", "4", "5"), strict=True):
        assert told == ["done"] * 5 or told.startswith(f"max_concurrency={value} ")


@pytest.mark.parametrize("how", ["ainvoke", "astream"])
def test_an_async_run_works_or_is_refused_and_never_hangs(how: str) -> None:
    for value, told in zip("123", tried(how, "1", "2", "3"), strict=True):
        assert told == ["done"] * 5 or told.startswith(f"max_concurrency={value} ")
