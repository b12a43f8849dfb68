"""The fallback plan, and the result of a planner that failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from casewright.errors import CasewrightError, one_line
from casewright.planner.plan import Plan, QuestionRef, Step
from casewright.planner.request import MAX_WRITTEN_CHARACTERS, PlanRequest, PlanResult
from casewright.tools import NO_EVIDENCE, Source


def fallback_plan(request: PlanRequest) -> Plan:
    """Return a plan that is valid for the request: one call, with the whole question if possible.

    The plan calls the first tool that needs only the question, or else ``no_evidence``.
    """
    for tool in request.toolbox:
        required = [p for p in tool.parameters if p.required]
        if len(required) == 1:
            (parameter,) = required
            if Source.QUESTION in parameter.sources and parameter.fits(request.question):
                return Plan((Step(tool.name, ((parameter.name, QuestionRef()),)),))
    return Plan((Step(NO_EVIDENCE.name),))


class FallbackPlanner:
    """Returns ``fallback_plan`` for every request."""

    name = "fallback"

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the fallback plan."""
        return PlanResult(fallback_plan(request), self.name)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the fallback plan."""
        return self.plan(request)


def fallback_result(
    planner_name: str,
    reason: str | Exception,
    result: PlanResult,
    *,
    milliseconds: float,
    attempts: int = 1,
    tokens: Mapping[str, int] | None = None,
    written: str = "",
) -> PlanResult:
    """Return a result of the fallback planner, with the reason why another planner failed.

    ``milliseconds`` is the time of both planners. ``attempts``, ``tokens`` and ``written`` are the
    failed planner's; ``written`` is cut to ``MAX_WRITTEN_CHARACTERS``.
    """
    if isinstance(reason, Exception) and not isinstance(reason, CasewrightError):
        reason = f"It failed: {one_line(reason)}"
    return replace(
        result,
        attempts=attempts + result.attempts,
        fallback=f"{planner_name}: {reason}",
        milliseconds=milliseconds,
        tokens=tokens or result.tokens,
        written=written[:MAX_WRITTEN_CHARACTERS],
    )
