"""Steps start as soon as their inputs are available, within the limit of concurrency."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from casewright.graph import Limits, build_graph
from casewright.graph.random_plans import random_dag, work_toolbox
from casewright.planner.fixed import FixedPlanner
from casewright.tools import CallContext
from tests.graph.helpers import Arguments, Ask, graph_of, statuses, step_of, tool, values


def test_step_starts_as_soon_as_its_inputs_are_available(
    ask: Ask,
) -> None:
    third_ran = threading.Event()

    def slow(arguments: Arguments, context: CallContext) -> str:
        return "overtaken" if third_ran.wait(8) else "a barrier held the others back"

    def quick(arguments: Arguments, context: CallContext) -> str:
        if context.step == "s4":
            third_ran.set()
        return f"{context.step} after {arguments.get('a')}"

    plan = "s1 = slow()\ns2 = quick()\ns3 = quick(a=s2.value)\ns4 = quick(a=s3.value)"
    answer = ask(graph_of([tool("slow", slow), tool("quick", quick)], plan))
    assert values(answer)["s1"] == ["overtaken"]
    assert values(answer)["s4"] == ["s4 after s3 after s2 after None"]


def test_run_time_is_close_to_the_critical_path(ask: Ask) -> None:
    rng = random.Random(5)
    ratios = []
    for _ in range(5):
        dag = random_dag(rng, shortest=0.1, longest=0.3)
        limits = Limits(concurrency=12)
        graph = build_graph(work_toolbox(), FixedPlanner(dag.plan()), limits=limits)
        start = time.perf_counter()
        answer = ask(graph)
        ratios.append((time.perf_counter() - start) / dag.critical_path())
        assert set(statuses(answer).values()) == {"done"}
    assert min(ratios) >= 0.99
    assert sorted(ratios)[2] < 1.5, ratios


class CallCounter:
    """Counts the calls that run at the same time."""

    def __init__(self) -> None:
        self.running = self.peak = self.calls = 0
        self._lock = threading.Lock()

    @contextmanager
    def counted(self) -> Iterator[None]:
        with self._lock:
            self.running += 1
            self.calls += 1
            self.peak = max(self.peak, self.running)
        try:
            yield
        finally:
            with self._lock:
                self.running -= 1


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking tool", "async tool"])
@pytest.mark.parametrize("cap", [1, 3, 12])
def test_exactly_as_many_steps_run_at_once_as_concurrency_allows(
    ask: Ask, cap: int, is_async: bool
) -> None:
    counter = CallCounter()

    def pauses() -> Iterator[float]:
        # A busy machine starts calls late: each call waits for ``cap`` calls and for a surplus one.
        until = time.monotonic() + 5
        while counter.peak < cap and time.monotonic() < until:
            yield 0.005
        yield 0.02

    def work(arguments: Arguments, context: CallContext) -> str:
        with counter.counted():
            for pause in pauses():
                time.sleep(pause)
        return context.step

    async def awork(arguments: Arguments, context: CallContext) -> str:
        with counter.counted():
            for pause in pauses():
                await asyncio.sleep(pause)
        return context.step

    plan = "\n".join(f"s{n} = work()" for n in range(1, 13))
    run_async: Any = awork if is_async else None
    answer = ask(graph_of([tool("work", work, run_async)], plan, concurrency=cap))
    assert set(statuses(answer).values()) == {"done"}
    assert counter.calls == 12
    assert counter.peak == cap


def test_langgraph_max_concurrency_does_not_raise_the_concurrency_limit(ask: Ask) -> None:
    counter = CallCounter()

    def work(arguments: Arguments, context: CallContext) -> str:
        with counter.counted():
            time.sleep(0.05)
        return context.step

    plan = "\n".join(f"s{n} = work()" for n in range(1, 9))
    config = {"max_concurrency": 40, "configurable": {"max_concurrency": 40}}
    ask(graph_of([tool("work", work)], plan, concurrency=2), config=config)
    assert counter.peak == 2


def test_waiting_for_inputs_or_a_free_slot_does_not_count_as_step_time(ask: Ask) -> None:
    def work(arguments: Arguments, context: CallContext) -> str:
        time.sleep(0.3)
        return context.step

    plan = "s1 = work()\ns2 = work(a=s1.value)\ns3 = work(a=s2.value)\ns4 = work()"
    answer = ask(graph_of([tool("work", work)], plan, concurrency=1, step_seconds=0.8))
    assert set(statuses(answer).values()) == {"done"}
    for step in answer.steps:
        assert 280 < step["milliseconds"] < 800
    assert step_of(answer, "s3")["started"] > 550


def test_timed_out_step_frees_its_slot(ask: Ask) -> None:
    release = threading.Event()

    def hang(arguments: Arguments, context: CallContext) -> str:
        release.wait(20)
        return "late"

    tools = [tool("hang", hang), tool("quick", lambda *_: "there")]
    plan = "s1 = hang()\ns2 = hang()\ns3 = quick()"
    answer = ask(graph_of(tools, plan, concurrency=1, step_seconds=0.2))
    release.set()
    assert statuses(answer) == {"s1": "timed_out", "s2": "timed_out", "s3": "done"}


def test_chain_of_the_maximum_number_of_steps_ends_with_concurrency_1(ask: Ask) -> None:
    size = 40
    lines = ["s1 = work()", *(f"s{n} = work(a=s{n - 1}.value)" for n in range(2, size + 1))]
    tools = [tool("work", lambda _, context: context.step)]
    answer = ask(graph_of(tools, "\n".join(lines), steps=size, concurrency=1))
    assert list(statuses(answer).values()) == ["done"] * size
