"""A planner that takes the most probable valid plan of a source, and the sources' protocol."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

from threadpoolctl import OpenBLASController, get_cached_controller

from casewright.planner.continuing import continued
from casewright.planner.fallback import fallback_plan
from casewright.planner.plan import Plan
from casewright.planner.request import PlanRequest, PlanResult, milliseconds_since

#: Maximum number of plans that are checked for a request, and of alternatives in a result.
MAX_PLANS, MAX_ALTERNATIVES = 16, 2


class _OneBlasThread:
    """Limits BLAS to one thread while any planner plans.

    OpenBLAS uses all cores even for small products, and its waiting threads triple the CPU time.
    Threadpoolctl would restore the setting when the thread that changed it has planned, though
    other threads may still plan. Here, the last thread restores it. OpenMP has a limit per thread.
    """

    def __init__(self) -> None:
        self._lock, self._active_count = threading.Lock(), 0
        self._limit: Any = None
        self._thread_state = threading.local()

    def __enter__(self) -> None:
        controller = get_cached_controller()
        if any(library.get("threading_layer") == "openmp" for library in controller.info()):
            limit = controller.limit(limits=1, user_api="blas")
            self._thread_state.__dict__.setdefault("limits", []).append(limit)
            return
        with self._lock:
            if not self._active_count:
                self._limit = controller.limit(limits=1, user_api="blas")
                # Without this call, no other thread could restore the setting.
                OpenBLASController.clear_controlling_thread()
            self._active_count += 1

    def __exit__(self, *exception: object) -> None:
        if limits := self._thread_state.__dict__.get("limits"):
            limits.pop().restore_original_limits()
            return
        with self._lock:
            self._active_count -= 1
            if not self._active_count:
                self._limit.restore_original_limits()
                OpenBLASController.clear_controlling_thread()


ONE_BLAS_THREAD = _OneBlasThread()


class ScoredPlan(NamedTuple):
    """A plan for a request, with its confidence; the plan may break static checks.

    ``score`` is the plan's log-probability, if the source computes one; for the other fields see
    ``PlanResult``.
    """

    plan: Plan
    confidence: float | None = None
    asks_back: bool = False
    because: str = ""
    score: float | None = None


def explain_confidence(planner: str, probabilities: Sequence[float]) -> str:
    """Return a clause with the first two of the probabilities: a plan's, and the next plan's."""
    probability, *others = probabilities
    next_plan = f"the next {others[0]:.2g}" if others else "no other was found"
    return f"{planner} gives it a probability of {probability:.2g}, {next_plan}"


class PlanSource(Protocol):
    """Source of scored plans, such as plan cases or a trained model."""

    def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
        """Yield plans for a request, the most probable first."""


def valid_plans(source: PlanSource, request: PlanRequest) -> Iterator[ScoredPlan]:
    """Yield the valid plans among the ``MAX_PLANS`` most probable plans for a request."""
    scored_plans = islice(source.scored_plans(request), MAX_PLANS)
    return (scored for scored in scored_plans if is_valid(scored.plan, request))


def is_valid(plan: Plan, request: PlanRequest) -> bool:
    """Return True if a plan passes the static checks."""
    return not any(request.violations(plan))


class ReusePlanner:
    """Takes the most probable valid plan of a source."""

    def __init__(self, name: str, source: PlanSource) -> None:
        self.name = name
        self._source = source

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the most probable valid plan, or a fallback plan; see ``Planner``."""
        with ONE_BLAS_THREAD:
            started = time.perf_counter()
            plans: Iterator[ScoredPlan] = islice(self._source.scored_plans(request), MAX_PLANS)
            if request.failures:
                # The most probable plan is usually the one that has just failed. Its literals may
                # have been too narrow, so its call is repeated with the whole question instead.
                plans = (
                    scored._replace(plan=plan)
                    for scored in plans
                    if (plan := continued(scored.plan, request, widen=True)) is not None
                )
            return first_valid(self.name, plans, request, started)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``; the call blocks the event loop for only milliseconds."""
        return self.plan(request)


def first_valid(
    name: str, scored_plans: Iterator[ScoredPlan], request: PlanRequest, started: float
) -> PlanResult:
    """Return the first valid plan, or a fallback plan, as a planner's result.

    ``started`` is the value of ``time.perf_counter`` when the planner was called.
    """
    attempts, last_violation = 0, "No plan was found that this request allows."
    for plan, confidence, asks_back, because, _ in scored_plans:
        attempts += 1
        if (violation := next(request.violations(plan), None)) is not None:
            last_violation = str(violation)
            continue
        # The iterator continues with the less probable plans.
        others = (s.plan for s in scored_plans if s.plan != plan and is_valid(s.plan, request))
        return PlanResult(
            plan,
            name,
            attempts,
            confidence=confidence,
            asks_back=asks_back,
            because=because,
            alternatives=tuple(dict.fromkeys(islice(others, MAX_ALTERNATIVES))),
            milliseconds=milliseconds_since(started),
        )
    return PlanResult(
        fallback_plan(request),
        name,
        attempts + 1,  # the fallback plan counts too
        fallback=last_violation,
        milliseconds=milliseconds_since(started),
        confidence=0.0,
        asks_back=True,
    )
