"""Makes a plan continue a run: finished steps come first, and no failed call is repeated."""

from __future__ import annotations

from casewright.errors import PlanError
from casewright.planner.plan import Literal, Plan, QuestionRef, Scalar
from casewright.planner.request import PlanRequest
from casewright.tools import NO_EVIDENCE


def continued(plan: Plan, request: PlanRequest, *, widen: bool = False) -> Plan | None:
    """Return a plan with the request's fixed (finished) steps, then the other steps of ``plan``.

    Equal steps are merged, so a planner may ignore the fixed steps and plan them again. With
    ``widen``, a step that repeats a failed call gets the whole question instead of text literals.
    Return ``None`` if the plan still repeats a failed call, or adds no step.
    """
    steps = list(request.fixed.steps)
    new_numbers: dict[int, int] = {}
    for number, planned_step in enumerate(plan.steps, 1):
        step = planned_step.renumbered(new_numbers)
        if widen and step in request.failures:
            step = step.mapped(as_question)
        if step in request.failures:
            return None
        if step.tool == NO_EVIDENCE.name:
            continue
        if step not in steps:
            steps.append(step)
        new_numbers[number] = steps.index(step) + 1
    return Plan(tuple(steps)) if len(steps) > len(request.fixed.steps) else None


def as_question(value: Scalar) -> Scalar:
    """Replace a text by a reference to the whole question; return other values unchanged."""
    return QuestionRef() if isinstance(value, Literal) and isinstance(value.value, str) else value


def validated_plan(plan: Plan, request: PlanRequest) -> Plan:
    """Check a plan and return it; if calls have failed, put the request's fixed steps first.

    Raise ``PlanError`` if a check fails, or the plan repeats a failed call or adds no step.
    """
    if request.failures:
        continuation = continued(plan, request)
        if continuation is None:
            raise PlanError(
                "The plan repeats a call without results, or adds no call.",
                "Call another tool, or one with other arguments.",
            )
        plan = continuation
    request.validate(plan)
    return plan
