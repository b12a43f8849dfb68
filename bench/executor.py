"""Measures plans' run times divided by critical paths, with our executor and with ``Send``."""

from __future__ import annotations

import asyncio
import operator
import random
import time
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, cast

import numpy as np
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from numpy.typing import NDArray
from typing_extensions import TypedDict

from casewright.bench.harness import mean, p50, p95, tracked
from casewright.bench.report import Report
from casewright.graph import Limits, RunContext, build_graph
from casewright.graph.random_plans import Dag, random_dag, work_toolbox
from casewright.planner.fixed import FixedPlanner

NOTES = (
    "The three systems ran each plan in turn, in one process. casewright, blocking, send_waves: "
    "median of wall time divided by critical path, with Casewright's async executor, Casewright's "
    "blocking executor, and waves of LangGraph's Send.",
)


def measure_executor(plan_count: int, seed: int) -> Report:
    """Time random plans of 1 to 12 steps of 50 to 150 ms in three systems.

    The systems are the async executor, the blocking executor, and ``send_waves``. The whole graph
    is timed, with LangGraph's overhead and without planning.
    """
    rng = random.Random(seed)
    dags = [random_dag(rng) for _ in range(plan_count)]
    seconds = asyncio.run(_time_all(dags))
    path_seconds = np.array([dag.critical_path() for dag in dags])
    ratios = np.array(seconds) / path_seconds[:, None]
    async_ratios, blocking_ratios, wave_ratios = ratios.T
    rows = [
        {
            "steps": f"{low}–{high}",
            "plans": int(in_range.sum()),
            "path_ms": p50(path_seconds[in_range] * 1000),
            "casewright": p50(async_ratios[in_range]),
            "blocking": p50(blocking_ratios[in_range]),
            "send_waves": p50(wave_ratios[in_range]),
        }
        for low, high in ((1, 1), (2, 4), (5, 8), (9, 12))
        if (in_range := np.array([low <= len(dag.seconds) <= high for dag in dags])).any()
    ]
    figures = {
        "ratio_casewright_over_critical_path_p50": p50(async_ratios),
        "ratio_casewright_over_critical_path_p95": p95(async_ratios),
        "ratio_casewright_blocking_over_critical_path_p50": p50(blocking_ratios),
        "ratio_send_waves_over_critical_path_p50": p50(wave_ratios),
        "ratio_send_waves_over_casewright_p50": p50(wave_ratios / async_ratios),
        "share_of_plans_with_a_costly_barrier": mean([_has_costly_barrier(dag) for dag in dags]),
    }
    settings = {"dags": plan_count, "seed": seed, "step_ms": [50, 150], "steps": [1, 12]}
    return Report("executor", settings, figures, rows, NOTES, partial(_draw, ratios=ratios))


async def _time_all(dags: Sequence[Dag]) -> list[NDArray[np.float64]]:
    """Return each plan's seconds: async executor, blocking executor, and ``send_waves``."""
    seconds = []
    for dag in tracked("Running plans", dags):
        limits = Limits(steps=len(dag.seconds), concurrency=len(dag.seconds))
        graph = build_graph(work_toolbox(), FixedPlanner(dag.plan()), limits=limits)
        graph_input: Any = {"question": "how long"}
        waves = send_waves(dag)
        stamps = [time.perf_counter()]
        await graph.ainvoke(graph_input, context=RunContext())
        stamps.append(time.perf_counter())
        graph.invoke(graph_input, context=RunContext())
        stamps.append(time.perf_counter())
        await waves.ainvoke({})
        stamps.append(time.perf_counter())
        seconds.append(np.diff(stamps))
    return seconds


def _has_costly_barrier(dag: Dag) -> bool:
    """Return true if the waves, each as long as its slowest step, outlast the critical path."""
    wave_seconds = sum(max(dag.seconds[step] for step in wave) for wave in dag.waves())
    return wave_seconds > dag.critical_path() + 1e-9


class _State(TypedDict, total=False):
    wave: int  # the index of the running wave
    done: Annotated[list[int], operator.add]  # the indices of the finished steps


def send_waves(dag: Dag) -> Any:
    """Return a graph that runs a plan in waves of parallel steps, with LangGraph's ``Send``."""
    waves = dag.waves()

    async def step(state: dict[str, int]) -> dict[str, list[int]]:
        await asyncio.sleep(dag.seconds[state["step"]])
        return {"done": [state["step"]]}

    def fan_out(state: _State) -> list[Send] | str:
        if state["wave"] >= len(waves):
            return END
        return [Send("step", {"step": number}) for number in waves[state["wave"]]]

    graph = StateGraph(_State)
    graph.add_node("advance", lambda state: {"wave": state.get("wave", -1) + 1})
    graph.add_node("step", cast(Any, step))
    graph.add_edge(START, "advance")
    graph.add_conditional_edges("advance", fan_out, ["step", END])
    graph.add_edge("step", "advance")
    return graph.compile()


def _draw(axes: Any, ratios: Any) -> None:
    labels = ["casewright", "casewright, blocking", "Send waves"]
    axes.boxplot(list(ratios.T), tick_labels=labels, whis=(5, 95))
    axes.axhline(1.0, color="grey", linewidth=0.8)
    axes.set(ylabel="wall time over critical path", title="Random plans of 1 to 12 steps")
