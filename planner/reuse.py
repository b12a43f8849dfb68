"""Readings of a request: plans with their confidence, and the planner that takes the likeliest."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple, Protocol

from casewright.errors import PlanError
from casewright.planner.fallback import fallback_plan
from casewright.planner.plan import Plan
from casewright.planner.request import PlanRequest, PlanResult

#: Readings of a request that are looked at, and plans that are told beside the likeliest.
READINGS, ALTERNATIVES = 16, 2


class Reading(NamedTuple):
    """A plan for a request.

    Attributes:
        plan: It may break static checks.
        confidence: Probability that it is right, 0 to 1; ``None`` where there is none.
        asks_back: So unsure that whoever asked should be asked what was meant.
    """

    plan: Plan
    confidence: float | None = None
    asks_back: bool = False


class Reuse(Protocol):
    """Makes plans from what was learned of plan cases."""

    def readings(self, request: PlanRequest) -> Iterator[Reading]:
        """Yield readings of a request, the likeliest first."""


def valid_readings(reuse: Reuse, request: PlanRequest) -> Iterator[Reading]:
    """Yield the valid ones of the likeliest readings of a request."""
    readings = islice(reuse.readings(request), READINGS)
    return (reading for reading in readings if valid(reading.plan, request))


def valid(plan: Plan, request: PlanRequest) -> bool:
    """Return whether a plan passes the static checks."""
    try:
        request.validate(plan)
    except PlanError:
        return False
    return True


class ReusePlanner:
    """Plans by the likeliest valid reading of a request.

    Args:
        name: The planner's.
        reuse: Reads requests.
    """

    def __init__(self, name: str, reuse: Reuse) -> None:
        self.name = name
        self._reuse = reuse

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the likeliest valid plan, or a fallback; see ``Planner``."""
        started = time.perf_counter()
        attempts, reason = 0, "No plan was found that this request allows."
        readings = islice(self._reuse.readings(request), READINGS)
        for plan, confidence, asks_back in readings:
            attempts += 1
            try:
                request.validate(plan)
            except PlanError as error:
                reason = str(error)
                continue
            others = (
                reading.plan
                for reading in readings
                if reading.plan != plan and valid(reading.plan, request)
            )
            return PlanResult(
                plan,
                self.name,
                attempts,
                confidence=confidence,
                asks_back=asks_back,
                alternatives=tuple(dict.fromkeys(islice(others, ALTERNATIVES))),
                milliseconds=_since(started),
            )
        plan, attempts = fallback_plan(request), attempts + 1
        return PlanResult(plan, self.name, attempts, reason, _since(started), confidence=0.0)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``; it takes milliseconds and waits for nothing."""
        return self.plan(request)


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
