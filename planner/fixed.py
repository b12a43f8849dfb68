"""A planner with a constant plan, for pinned plans, measurements and tests."""

from __future__ import annotations

from dataclasses import dataclass

from casewright.planner.plan import Plan
from casewright.planner.request import PlanRequest, PlanResult


@dataclass(frozen=True, slots=True)
class FixedPlanner:
    """Returns the plan ``fixed`` for every request."""

    fixed: Plan
    name: str = "fixed"

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the plan ``fixed``."""
        return PlanResult(self.fixed, self.name)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the plan ``fixed``."""
        return self.plan(request)
