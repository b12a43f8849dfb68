"""BLAS has one thread during planning; afterwards the program's setting is restored."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from threadpoolctl import OpenBLASController, ThreadpoolController, threadpool_limits

from casewright.planner import Plan, PlanRequest
from casewright.planner.reuse import ReusePlanner, ScoredPlan
from tests.planner.helpers import SHOP


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in ThreadpoolController().select(user_api="blas").info()}


class RecordingSource:
    """Records the number of BLAS threads during planning."""

    def __init__(self) -> None:
        self.thread_counts: set[int] = set()

    def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
        self.thread_counts |= blas_threads()
        yield ScoredPlan(Plan(()))


def test_planning_uses_one_blas_thread_and_restores_the_setting() -> None:
    source = RecordingSource()
    with threadpool_limits(limits=2, user_api="blas"):
        ReusePlanner("recording", source).plan(PlanRequest("Where is it?", SHOP))
        assert (source.thread_counts, blas_threads()) == ({1}, {2})


class WaitingSource(RecordingSource):
    """Records the number of BLAS threads once it may end."""

    def __init__(self) -> None:
        super().__init__()
        self.started, self.may_end = Event(), Event()

    def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
        self.started.set()
        assert self.may_end.wait(10)
        yield from super().scored_plans(request)


def test_blas_threads_are_restored_after_the_last_concurrent_plan() -> None:
    request, sources = PlanRequest("Where is it?", SHOP), (WaitingSource(), WaitingSource())
    with threadpool_limits(limits=2, user_api="blas"), ThreadPoolExecutor(2) as threads:
        # Otherwise only this thread can change the limit.
        OpenBLASController.clear_controlling_thread()
        plans = []
        for source in sources:
            plans.append(threads.submit(ReusePlanner("waiting", source).plan, request))
            assert source.started.wait(10)
        for source, plan in zip(sources, plans, strict=True):
            source.may_end.set()
            plan.result(10)
        assert ([source.thread_counts for source in sources], blas_threads()) == ([{1}, {1}], {2})
