"""Plans for a request with their confidence, and the planner that takes the likeliest."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from threadpoolctl import get_cached_controller

from casewright.planner.continuing import continued
from casewright.planner.fallback import fallback_plan
from casewright.planner.plan import Plan
from casewright.planner.request import PlanRequest, PlanResult, milliseconds_since

#: Maximum number of plans that are checked for a request, and of alternatives in a result.
MAX_PLANS, MAX_ALTERNATIVES = 16, 2


class ScoredPlan(NamedTuple):
    """A plan for a request, with its confidence.

    The plan may break static checks. ``score`` is its log-probability, if the source computes one.
    See ``PlanResult`` for the other fields.
    """

    plan: Plan
    confidence: float | None = None
    asks_back: bool = False
    because: str = ""
    score: float | None = None


def explain_confidence(planner: str, probabilities: Sequence[float]) -> str:
    """Return a sentence with the probabilities of a planner's best and second-best plan."""
    first, *others = probabilities
    next_one = f"the next {others[0]:.2g}" if others else "no other was found"
    return f"{planner} gives it a probability of {first:.2g}, {next_one}"


class PlanSource(Protocol):
    """A source of plans: plan cases, or a model that was trained on them."""

    def scored_plans(self, request: PlanRequest) -> Iterator[ScoredPlan]:
        """Yield plans for a request, the likeliest first."""


def valid_plans(source: PlanSource, request: PlanRequest) -> Iterator[ScoredPlan]:
    """Yield the valid ones of the likeliest plans for a request."""
    scored_plans = islice(source.scored_plans(request), MAX_PLANS)
    return (scored for scored in scored_plans if valid(scored.plan, request))


def valid(plan: Plan, request: PlanRequest) -> bool:
    """Return whether a plan passes the static checks."""
    return not any(request.violations(plan))


def _continued_plans(
    scored_plans: Iterator[ScoredPlan], request: PlanRequest
) -> Iterator[ScoredPlan]:
    # The likeliest plan is usually the one whose step has just failed: its literal may have been
    # too narrow, so the failed call is repeated with the whole question.
    for scored in scored_plans:
        if (plan := continued(scored.plan, request, widen=True)) is not None:
            yield scored._replace(plan=plan)


class ReusePlanner:
    """Takes the likeliest valid plan for a request."""

    def __init__(self, name: str, source: PlanSource) -> None:
        self.name = name
        self._source = source

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the likeliest valid plan, or a fallback; see ``Planner``."""
        # OpenBLAS spreads even small matrix products over all cores, and its idle threads spin.
        # This tripled the CPU time and slowed concurrent requests.
        with get_cached_controller().limit(limits=1, user_api="blas"):
            return self._likeliest(request)

    def _likeliest(self, request: PlanRequest) -> PlanResult:
        started = time.perf_counter()
        scored_plans: Iterator[ScoredPlan] = islice(self._source.scored_plans(request), MAX_PLANS)
        if request.failures:
            scored_plans = _continued_plans(scored_plans, request)
        return first_valid(self.name, scored_plans, request, started)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``; it takes milliseconds and waits for nothing."""
        return self.plan(request)


def first_valid(
    name: str, scored_plans: Iterator[ScoredPlan], request: PlanRequest, started: float
) -> PlanResult:
    """Return the likeliest valid plan as a planner's result, or a fallback.

    Args:
        started: When the planner began, by ``time.perf_counter``.
    """
    attempts, last_violation = 0, "No plan was found that this request allows."
    for plan, confidence, asks_back, because, _ in scored_plans:
        attempts += 1
        if (violation := next(request.violations(plan), None)) is not None:
            last_violation = str(violation)
            continue
        others = (r.plan for r in scored_plans if r.plan != plan and valid(r.plan, request))
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
    plan, spent = fallback_plan(request), milliseconds_since(started)
    return PlanResult(
        plan, name, attempts + 1, last_violation, spent, confidence=0.0, asks_back=True
    )
