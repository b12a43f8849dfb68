"""Readings of a request: plans with their confidence, and the planner that takes the likeliest."""

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

#: Most readings of a request that are checked, and most alternatives of a result.
READINGS, ALTERNATIVES = 16, 2


class Reading(NamedTuple):
    """A plan for a request.

    The plan may break static checks. ``score`` is its log-probability, where its maker knows one.
    See ``PlanResult`` for the other fields.
    """

    plan: Plan
    confidence: float | None = None
    asks_back: bool = False
    because: str = ""
    score: float | None = None


def ranked_because(who: str, probabilities: Sequence[float]) -> str:
    """Return why a planner is so sure of the likeliest of its plans, by their probabilities."""
    first, *others = probabilities
    next_one = f"the next {others[0]:.2g}" if others else "no other was found"
    return f"{who} gives it a probability of {first:.2g}, {next_one}"


class Reuse(Protocol):
    """Makes plans from plan cases, or from a model that was trained on them."""

    def readings(self, request: PlanRequest) -> Iterator[Reading]:
        """Yield readings of a request, the likeliest first."""


def valid_readings(reuse: Reuse, request: PlanRequest) -> Iterator[Reading]:
    """Yield the valid ones of the likeliest readings of a request."""
    readings = islice(reuse.readings(request), READINGS)
    return (reading for reading in readings if valid(reading.plan, request))


def valid(plan: Plan, request: PlanRequest) -> bool:
    """Return whether a plan passes the static checks."""
    return not any(request.violations(plan))


def _continued_readings(readings: Iterator[Reading], request: PlanRequest) -> Iterator[Reading]:
    # The likeliest reading is the plan that has run: its literal may have been too narrow.
    for reading in readings:
        if (plan := continued(reading.plan, request, widen=True)) is not None:
            yield reading._replace(plan=plan)


class ReusePlanner:
    """Plans by the likeliest valid reading of a request."""

    def __init__(self, name: str, reuse: Reuse) -> None:
        self.name = name
        self._reuse = reuse

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the likeliest valid plan, or a fallback; see ``Planner``."""
        # OpenBLAS gives products of a few rows to all cores, whose threads spin while they wait for
        # the next one: three times the processor time, which other requests lacked.
        with get_cached_controller().limit(limits=1, user_api="blas"):
            return self._likeliest(request)

    def _likeliest(self, request: PlanRequest) -> PlanResult:
        started = time.perf_counter()
        readings: Iterator[Reading] = islice(self._reuse.readings(request), READINGS)
        if request.failures:
            readings = _continued_readings(readings, request)
        return first_valid(self.name, readings, request, started)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``; it takes milliseconds and waits for nothing."""
        return self.plan(request)


def first_valid(
    name: str, readings: Iterator[Reading], request: PlanRequest, started: float
) -> PlanResult:
    """Return the likeliest valid reading as a planner's result, or a fallback.

    Args:
        started: When the planner began, by ``time.perf_counter``.
    """
    attempts, reason = 0, "No plan was found that this request allows."
    for plan, confidence, asks_back, because, _ in readings:
        attempts += 1
        if (violation := next(request.violations(plan), None)) is not None:
            reason = str(violation)
            continue
        others = (r.plan for r in readings if r.plan != plan and valid(r.plan, request))
        return PlanResult(
            plan,
            name,
            attempts,
            confidence=confidence,
            asks_back=asks_back,
            because=because,
            alternatives=tuple(dict.fromkeys(islice(others, ALTERNATIVES))),
            milliseconds=milliseconds_since(started),
        )
    plan, spent = fallback_plan(request), milliseconds_since(started)
    return PlanResult(plan, name, attempts + 1, reason, spent, confidence=0.0, asks_back=True)
