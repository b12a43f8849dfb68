"""Measures the time of an answer in a running process, and in a process started for the answer."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from casewright.bench.harness import first_scope, open_domain, p50, p95, take_turns, timed, tracked
from casewright.bench.layers import LayerSampler
from casewright.bench.report import Report
from casewright.graph import ExtractiveGenerator, RunContext, build_graph
from casewright.planner import plan_schema
from casewright.planner.named import CASE_PLANNER, make_planner
from casewright.stores import CaseStore

#: Number of cold starts of each timed command.
COLD_START_COUNT = 5
#: The stages of an answer; an answer's ``usage`` has the milliseconds of each stage.
STAGES = ("planning", "execution", "generation")
NOTES = (
    "Medians in milliseconds by the number of steps in the plan. cpu: the CPU time of all threads "
    "of the process.",
    "vectors: the same questions, once with all texts encoded anew, once with cached vectors.",
    "layers: shares of the sampled stacks; waiting threads are left out. A layer is a package of "
    "Casewright or a library. A stack counts for its innermost layer; NumPy is no layer.",
)


def measure_answer(domain_name: str, count: int) -> Report:
    """Time answers (planning, tool calls, generation) and cold starts.

    The planner is the case planner, with the domain's reader if there is one. Accuracy is not
    measured, because the asked queries are also plan cases.
    """
    rows: list[dict[str, Any]] = []
    sampler = LayerSampler()
    with (
        open_domain(domain_name) as tested,
        CaseStore(plan_schema(tested.uncached_encoder)) as plans,
    ):
        domain, queries = tested.domain, tested.domain.queries()
        sample = random.Random(0).sample(queries, min(count, len(queries)))
        plans.add(tested.opened.plan_cases.all())
        planner = make_planner(CASE_PLANNER, plans, domain.open_reader())
        graph = build_graph(tested.toolbox, planner, ExtractiveGenerator(tested.encoder))
        inputs: list[Any] = [{"question": q.query, "context": q.record.context} for q in sample]
        ask = partial(graph.invoke, context=RunContext(scope=first_scope(domain)))
        ask(inputs[0])  # the first answer loads the models
        for graph_input in tracked("Answering", inputs):
            rows.append(_row(ask, graph_input))
        with open_domain(domain_name, cached=False) as uncached:
            generator = ExtractiveGenerator(uncached.uncached_encoder)
            uncached_graph = build_graph(uncached.toolbox, planner, generator)
            ask_anew = partial(uncached_graph.invoke, context=RunContext(scope=first_scope(domain)))
            systems = {"encoded anew": partial(_row, ask_anew), "cached": partial(_row, ask)}
            rows_by_system = take_turns(systems, inputs, 1, "Answering with and without the cache")
        with sampler:
            # The sampler slows the answers, so these answers are not timed.
            for graph_input in tracked("Sampling", inputs):
                ask(graph_input)
    ask_command = ("ask", "--domain", domain_name, domain.questions[0])
    # The first start is not counted: it may compile modules. An installation compiles them before.
    start_seconds = [_process_seconds(*ask_command) for _ in range(COLD_START_COUNT + 1)][1:]
    help_seconds = [_process_seconds("--help") for _ in range(COLD_START_COUNT)]
    times = [row["ms"] for row in rows]
    rows.sort(key=itemgetter("steps"))
    rows_by_steps = {steps: list(group) for steps, group in groupby(rows, itemgetter("steps"))}
    step_rows: list[dict[str, Any]] = []
    for steps, group in rows_by_steps.items():
        counts = {"steps": steps, "answers": len(group)}
        step_rows.append({"table": "steps", **counts, **_medians(group)})
    medians = {name: _medians(group) for name, group in rows_by_system.items()}
    vector_rows = [{"table": "vectors", "vectors": n, **row} for n, row in medians.items()]
    layer_rows = [
        {"table": "layers", "layer": layer, "share": samples / sampler.counts.total()}
        for layer, samples in sampler.counts.most_common()
    ]
    settings = {"domain": domain.name, "planner": CASE_PLANNER, "queries": len(sample)}
    figures = {"answer_warm_ms_p50": p50(times), "answer_warm_ms_p95": p95(times)}
    figures["answer_warm_cpu_ms_p50"] = p50([row["cpu"] for row in rows])
    anew_ms, cached_ms = (row["ms"] for row in medians.values())
    figures |= {"answer_warm_ms_p50_encoded_anew": anew_ms, "answer_warm_ms_p50_cached": cached_ms}
    figures["ratio_answer_ms_encoded_anew_over_cached"] = anew_ms / cached_ms
    figures |= {"ask_cold_s_p50": p50(start_seconds), "ask_cold_s_max": max(start_seconds)}
    figures["help_cold_s_p50"] = p50(help_seconds)
    draw = partial(_draw, rows_by_steps=rows_by_steps)
    titles = {"steps": "answer by number of steps", "vectors": "vectors", "layers": "layers"}
    all_rows = [*step_rows, *vector_rows, *layer_rows]
    return Report("answer", settings, figures, all_rows, NOTES, draw, titles)


def _row(ask: Callable[[Any], Any], graph_input: Any) -> dict[str, Any]:
    """Ask a question; return the number of steps, and the wall, CPU and stage times in ms."""
    cpu_start = time.process_time()
    state, milliseconds = timed(partial(ask, graph_input))
    cpu_ms = (time.process_time() - cpu_start) * 1000
    answer = state["answer"]
    stages = {name: answer["usage"][f"{name}_ms"] for name in STAGES}
    return {"steps": len(answer["steps"]), "ms": milliseconds, "cpu": cpu_ms, **stages}


def _medians(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    return {name: p50([row[name] for row in rows]) for name in ("ms", "cpu", *STAGES)}


def _process_seconds(*arguments: str) -> float:
    command = [sys.executable, "-m", "casewright", *arguments]
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a later start then compiles no modules
    run = partial(subprocess.run, command, check=True, capture_output=True, env=environment)
    return timed(run)[1] / 1000


def _draw(axes: Any, rows_by_steps: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
    times = [[row["ms"] for row in group] for group in rows_by_steps.values()]
    axes.boxplot(times, tick_labels=list(rows_by_steps))
    labels = {"xlabel": "steps of the plan", "ylabel": "ms per answer", "title": "Warm answers"}
    axes.set(ylim=(0, None), **labels)
