"""A low ``max_concurrency`` in LangGraph's config causes an error, never a hang."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.graph.helpers import fresh_process

SCRIPT = """
import asyncio, json, sys
from casewright.errors import InputError
from tests.graph.helpers import QUESTION, graph_of, tool

tools = [tool("t", lambda _, context: context.step)]
plan = "s1 = t()\\ns2 = t(a=s1.value)\\ns3 = t()\\ns4 = t(a=s2.value, b=s3.value)\\ns5 = t()"
graph = graph_of(tools, plan)
inputs = {"question": QUESTION}
modes = ["custom", "values"]

async def astream(config):
    return [part async for part in graph.astream(inputs, config, stream_mode="values")][-1]

runs = {
    "invoke": lambda config: graph.invoke(inputs, config),
    "stream": lambda config: list(graph.stream(inputs, config, stream_mode="values"))[-1],
    "custom": lambda config: list(graph.stream(inputs, config, stream_mode=modes))[-1][1],
    "ainvoke": lambda config: asyncio.run(graph.ainvoke(inputs, config)),
    "astream": lambda config: asyncio.run(astream(config)),
}
outcomes = {}
for run in sys.argv[1:]:
    method, value = run.split()
    try:
        state = runs[method]({"max_concurrency": int(value)})
        outcomes[run] = [step["status"] for step in state["answer"]["steps"]]
    except InputError as error:
        outcomes[run] = str(error)
print(json.dumps(outcomes))
"""
REFUSED = [f"{method} {value}" for method in ("invoke", "stream") for value in (1, 2)]
FEW = [f"{method} {value}" for method in ("invoke", "custom") for value in (3, 4, 5)]
AWAITED = [f"{method} {value}" for method in ("ainvoke", "astream") for value in (1, 2, 3)]


@pytest.fixture(scope="module")
def outcomes_of_runs() -> dict[str, Any]:
    """Return the outcome of each run: the statuses of its steps, or the text of the error."""
    process = fresh_process(SCRIPT, *REFUSED, *FEW, *AWAITED, seconds=20)
    assert process.returncode == 0, process.stderr
    outcomes: dict[str, Any] = json.loads(process.stdout)
    return outcomes


@pytest.mark.parametrize("run", REFUSED)
def test_blocking_run_with_max_concurrency_1_or_2_is_refused(
    outcomes_of_runs: dict[str, Any], run: str
) -> None:
    outcome = outcomes_of_runs[run]
    assert isinstance(outcome, str), f"it ran: {outcome}"
    assert outcome.startswith(f"max_concurrency={run.split()[1]} ")
    assert "Limits(concurrency=" in outcome


@pytest.mark.parametrize("run", FEW)
def test_blocking_run_with_max_concurrency_3_to_5_finishes_or_is_refused(
    outcomes_of_runs: dict[str, Any], run: str
) -> None:
    outcome = outcomes_of_runs[run]
    assert outcome == ["done"] * 5 or outcome.startswith(f"max_concurrency={run.split()[1]} ")


@pytest.mark.parametrize("run", AWAITED)
def test_async_run_with_low_max_concurrency_finishes_or_is_refused(
    outcomes_of_runs: dict[str, Any], run: str
) -> None:
    outcome = outcomes_of_runs[run]
    assert outcome == ["done"] * 5 or outcome.startswith(f"max_concurrency={run.split()[1]} ")
