"""While a plan is made, BLAS has one thread; the program's setting returns."""

from __future__ import annotations

from collections.abc import Iterator

from threadpoolctl import ThreadpoolController, threadpool_limits

from casewright.planner import Plan, PlanRequest
from casewright.planner.reuse import ReusePlanner, ScoredPlan
from tests.planner.helpers import SHOP


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in ThreadpoolController().select(user_api="blas").info()}


class Noting:
    """Notes BLAS's threads while a plan is made."""

    def __init__(self) -> None:
        self.noted: set[int] = set()

    def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
        self.noted |= blas_threads()
        yield ScoredPlan(Plan(()))


def test_planning_gives_blas_one_thread_and_returns_the_setting() -> None:
    reuse = Noting()
    with threadpool_limits(limits=2, user_api="blas"):
        ReusePlanner("noting", reuse).plan(PlanRequest("Where is it?", SHOP))
        assert (reuse.noted, blas_threads()) == ({1}, {2})
