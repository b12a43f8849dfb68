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
both = ["custom", "values"]

async def astream(config):
    return [part async for part in graph.astream(asked, config, stream_mode="values")][-1]

runs = {
    "invoke": lambda config: graph.invoke(asked, config),
    "stream": lambda config: list(graph.stream(asked, config, stream_mode="values"))[-1],
    "custom": lambda config: list(graph.stream(asked, config, stream_mode=both))[-1][1],
    "ainvoke": lambda config: asyncio.run(graph.ainvoke(asked, config)),
    "astream": lambda config: asyncio.run(astream(config)),
}
told = {}
for one in sys.argv[1:]:
    how, value = one.split()
    try:
        state = runs[how]({"max_concurrency": int(value)})
        told[one] = [step["status"] for step in state["answer"]["steps"]]
    except InputError as error:
        told[one] = str(error)
print(json.dumps(told))
"""
REFUSED = [f"{how} {value}" for how in ("invoke", "stream") for value in (1, 2)]
FEW = [f"{how} {value}" for how in ("invoke", "custom") for value in (3, 4, 5)]
AWAITED = [f"{how} {value}" for how in ("ainvoke", "astream") for value in (1, 2, 3)]


@pytest.fixture(scope="module")
def outcomes_of_runs() -> dict[str, Any]:
    """What came of each way and value: the steps' statuses, or our error's text."""
    ended = fresh_process(TRY, *REFUSED, *FEW, *AWAITED, seconds=20)
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout)
    return told


@pytest.mark.parametrize("run", REFUSED)
def test_blocking_run_with_max_concurrency_1_or_2_is_refused(
    outcomes_of_runs: dict[str, Any], run: str
) -> None:
    told = outcomes_of_runs[run]
    assert isinstance(told, str), f"it ran: {told}"
    assert told.startswith(f"max_concurrency={run.split()[1]} ")
    assert "Limits(concurrency=" in told


@pytest.mark.parametrize("run", FEW)
def test_blocking_run_with_max_concurrency_3_to_5_finishes_or_is_refused(
    outcomes_of_runs: dict[str, Any], run: str
) -> None:
    told = outcomes_of_runs[run]
    assert told == ["done"] * 5 or told.startswith(f"max_concurrency={run.split()[1]} ")


@pytest.mark.parametrize("run", AWAITED)
def test_async_run_with_low_max_concurrency_finishes_or_is_refused(
    outcomes_of_runs: dict[str, Any], run: str
) -> None:
    told = outcomes_of_runs[run]
    assert told == ["done"] * 5 or told.startswith(f"max_concurrency={run.split()[1]} ")
