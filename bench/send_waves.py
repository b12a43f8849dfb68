"""The usual way to run a plan in LangGraph, for comparison: ``Send`` fan-out, wave by wave."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from casewright.bench.dags import Dag


class _State(TypedDict, total=False):
    wave: int
    done: Annotated[list[int], operator.add]


def send_waves(dag: Dag) -> Any:
    """Compile a graph that runs the plan's waves one after the other, each by ``Send``."""
    waves = dag.waves()

    async def step(given: dict[str, int]) -> dict[str, list[int]]:
        await asyncio.sleep(dag.seconds[given["step"]])
        return {"done": [given["step"]]}

    def advance(state: _State) -> dict[str, int]:
        return {"wave": state.get("wave", -1) + 1}

    def fan_out(state: _State) -> list[Send] | str:
        if state["wave"] >= len(waves):
            return END
        return [Send("step", {"step": number}) for number in waves[state["wave"]]]

    graph = StateGraph(_State)
    graph.add_node("advance", advance)
    fanned_out: Any = step
    graph.add_node("step", fanned_out)
    graph.add_edge(START, "advance")
    graph.add_conditional_edges("advance", fan_out, ["step", END])
    graph.add_edge("step", "advance")
    return graph.compile()
