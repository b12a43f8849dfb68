"""How close the executor comes to a plan's critical path, beside LangGraph ``Send`` waves."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from casewright.bench.dags import Dag, FixedPlanner, random_dag, work_toolbox
from casewright.bench.report import Report
from casewright.bench.send_waves import send_waves
from casewright.graph import Limits, RunContext, build_graph
from casewright.stores.progress import progress_bar

Times = tuple[float, float, float]


def measure_executor(dags: int, seed: int) -> Report:
    """Run random plans of 1 to 12 steps of 50 to 150 ms: by this graph, async and from a thread.

    What is timed is the whole graph (plan, execute, generate) with a planner that knows the plan,
    so that LangGraph's own overhead counts; each plan is run by all three in turn.
    """
    rng = random.Random(seed)
    plans = [random_dag(rng) for _ in range(dags)]
    times = asyncio.run(_time_all(plans))
    paths = np.array([dag.critical_path() for dag in plans])
    ratios = np.array(times) / paths[:, None]
    # Where every step of a wave is over when the next may start, waves lose nothing.
    hurt = np.array([_barrier_costs(dag) for dag in plans])
    rows = [
        {
            "steps": f"{low}–{high}",
            "plans": int(chosen.sum()),
            "path_ms": float(np.median(paths[chosen]) * 1000),
            "casewright": float(np.median(ratios[chosen, 0])),
            "blocking": float(np.median(ratios[chosen, 1])),
            "send_waves": float(np.median(ratios[chosen, 2])),
        }
        for low, high in ((1, 1), (2, 4), (5, 8), (9, 12))
        if (chosen := np.array([low <= len(dag.seconds) <= high for dag in plans])).any()
    ]
    figures = {
        "ratio_casewright_over_critical_path_p50": float(np.median(ratios[:, 0])),
        "ratio_casewright_over_critical_path_p95": float(np.percentile(ratios[:, 0], 95)),
        "ratio_casewright_blocking_over_critical_path_p50": float(np.median(ratios[:, 1])),
        "ratio_send_waves_over_critical_path_p50": float(np.median(ratios[:, 2])),
        "ratio_send_waves_over_casewright_p50": float(np.median(ratios[:, 2] / ratios[:, 0])),
        "share_of_plans_with_a_costly_barrier": float(hurt.mean()),
    }
    return Report(
        bench="executor",
        settings={"dags": dags, "seed": seed, "step_ms": [50, 150], "steps": [1, 12]},
        figures=figures,
        rows=rows,
        notes=[
            "Each plan ran by all three in turn, in one process. Columns: wall time of the whole "
            "graph over the critical path, at the median; async, blocking, and Send waves.",
        ],
        draw=lambda axes: _draw(axes, ratios),
    )


async def _time_all(plans: Sequence[Dag]) -> list[Times]:
    times: list[Times] = []
    with progress_bar("Running plans", len(plans), show=None) as advance:
        for dag in plans:
            limits = Limits(steps=len(dag.seconds), concurrency=len(dag.seconds))
            graph = build_graph(work_toolbox(), FixedPlanner(dag.plan()), limits=limits)
            asked: Any = {"question": "how long"}
            waves = send_waves(dag)
            started = time.perf_counter()
            await graph.ainvoke(asked, context=RunContext())
            own = time.perf_counter() - started
            started = time.perf_counter()
            graph.invoke(asked, context=RunContext())
            blocking = time.perf_counter() - started
            started = time.perf_counter()
            await waves.ainvoke({})
            times.append((own, blocking, time.perf_counter() - started))
            advance(1)
    return times


def _barrier_costs(dag: Dag) -> bool:
    by_waves = sum(max(dag.seconds[step] for step in wave) for wave in dag.waves())
    return by_waves > dag.critical_path() + 1e-9


def _draw(axes: Any, ratios: Any) -> None:
    axes.boxplot(
        list(ratios.T),
        tick_labels=["casewright", "casewright, blocking", "Send waves"],
        whis=(5, 95),
    )
    axes.axhline(1.0, color="grey", linewidth=0.8)
    axes.set(ylabel="wall time over critical path", title="Random plans of 1 to 12 steps")
