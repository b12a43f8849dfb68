"""Valid plans of a text that stands alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Protocol

from casewright.errors import PlanError
from casewright.planner.plan import Plan
from casewright.planner.request import PlanRequest

#: Plans of a question that are looked at.
READINGS = 16


class Reuse(Protocol):
    """Makes plans of plan cases."""

    def plans(self, request: PlanRequest) -> Iterator[Plan]:
        """Yield plans for a request, the likeliest first; they may break static checks."""

    def readings(self, request: PlanRequest) -> Iterator[tuple[Plan, float | None]]:
        """Yield the same, each with the probability that it is right, if there is one."""


def valid_plans(reuse: Reuse, request: PlanRequest) -> Iterator[Plan]:
    """Yield the valid ones of the likeliest plans for a request."""
    return (plan for plan in islice(reuse.plans(request), READINGS) if valid(plan, request))


def valid(plan: Plan, request: PlanRequest) -> bool:
    """Say whether a plan passes the static checks."""
    try:
        request.validate(plan)
    except PlanError:
        return False
    return True
