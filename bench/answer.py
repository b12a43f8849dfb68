"""How long an answer takes: warm in process, and from a cold start of the command line."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from casewright.bench.planner import UncachedQuestions
from casewright.bench.report import Report
from casewright.graph import ExtractiveGenerator, RunContext, build_graph
from casewright.planner import CasePlanner, plan_schema
from casewright.stores import CaseStore, default_encoder
from casewright.stores.paths import data_folder
from casewright.stores.progress import progress_bar

#: Starts of the command line, each; the median is told.
STARTS = 5


def measure_answer(domain_name: str, count: int) -> Report:
    """Time whole answers (plan, look-ups, wording) to annotated queries, and cold starts.

    Questions are encoded without a cache. A query is left out of nothing here: what is timed is
    the work, not whether the plan is right.
    """
    from casewright.domains import find_domain
    from casewright.serve.scopes import demo_scope

    domain = find_domain(domain_name)
    encoder = default_encoder()
    opened = domain.open(data_folder() / domain.name, encoder, False)
    queries = domain.queries()
    chosen = random.Random(0).sample(queries, min(count, len(queries)))
    scope = RunContext(scope=demo_scope(domain.scopes))
    rows: list[dict[str, Any]] = []
    timed = UncachedQuestions(encoder)
    with CaseStore(plan_schema(timed), ":memory:") as plans:
        plans.add(opened.plan_cases.all())
        generator = ExtractiveGenerator(encoder)
        graph = build_graph(opened.toolbox, CasePlanner(plans), generator)
        asked: list[Any] = [
            {"question": query.query, "context": query.record.context} for query in chosen
        ]
        graph.invoke(asked[0], context=scope)
        with progress_bar("Answering", len(asked)) as advance:
            for given in asked:
                started = time.perf_counter()
                answer = graph.invoke(given, context=scope)["answer"]
                spent = (time.perf_counter() - started) * 1000
                rows.append({"steps": len(answer["steps"]), "ms": spent, **_parts(answer)})
                advance(1)
    opened.close()
    question = domain.questions[0]
    cold = [_start("ask", "--domain", domain_name, question) for _ in range(STARTS)]
    usage = [_start("--help") for _ in range(STARTS)]
    times = np.array([row["ms"] for row in rows])
    return Report(
        bench="answer",
        settings={"domain": domain.name, "planner": "case", "queries": len(chosen)},
        figures={
            "answer_warm_ms_p50": float(np.median(times)),
            "answer_warm_ms_p95": float(np.percentile(times, 95)),
            "ask_cold_s_p50": float(np.median(cold)),
            "ask_cold_s_max": max(cold),
            "help_cold_s_p50": float(np.median(usage)),
        },
        rows=_by_steps(rows),
        notes=["Milliseconds at the median, by the number of steps of the plan."],
        draw=lambda axes: _draw(axes, rows),
    )


def _parts(answer: dict[str, Any]) -> dict[str, float]:
    usage = answer["usage"]
    return {name: usage[f"{name}_ms"] for name in ("planning", "execution", "generation")}


def _by_steps(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    table = []
    for steps in sorted({row["steps"] for row in rows}):
        own = [row for row in rows if row["steps"] == steps]
        medians = {
            name: float(np.median([row[name] for row in own]))
            for name in ("ms", "planning", "execution", "generation")
        }
        table.append({"steps": steps, "answers": len(own), **medians})
    return table


def _start(*arguments: str) -> float:
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "casewright", *arguments], check=True, capture_output=True
    )
    return time.perf_counter() - started


def _draw(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    steps = sorted({row["steps"] for row in rows})
    axes.boxplot(
        [[row["ms"] for row in rows if row["steps"] == s] for s in steps], tick_labels=steps
    )
    axes.set(
        xlabel="steps of the plan", ylabel="ms an answer", title="Warm answers", ylim=(0, None)
    )
