"""Plans whose first steps are fixed, for replanning after steps that found nothing."""

from __future__ import annotations

from collections.abc import Collection

from casewright.errors import PlanError
from casewright.planner.plan import Literal, Plan, QuestionRef, Scalar
from casewright.planner.request import PlanRequest
from casewright.tools import NO_EVIDENCE


def part_of(plan: Plan, numbers: Collection[int]) -> tuple[Plan, dict[int, int]]:
    """Return these steps as a plan, and a mapping from old to new step numbers.

    The steps must refer only to each other.
    """
    renumbered = {number: new for new, number in enumerate(sorted(numbers), 1)}
    steps = (plan.steps[number - 1].renumbered(renumbered) for number in renumbered)
    return Plan(tuple(steps)), renumbered


def continued(plan: Plan, request: PlanRequest, *, widen: bool = False) -> Plan | None:
    """Return a plan of the request's fixed steps, followed by the other steps of a plan.

    Equal steps are identified, so a planner that ignores fixed steps can continue a plan too.

    Args:
        widen: Replace the texts of a failed call with the whole question.

    Returns:
        ``None`` if the plan repeats a failed call or adds no step.
    """
    steps = list(request.fixed.steps)
    numbers: dict[int, int] = {}
    for number, written in enumerate(plan.steps, 1):
        step = written.renumbered(numbers)
        if widen and step in request.failures:
            step = step.mapped(as_question)
        if step in request.failures:
            return None
        if step.tool == NO_EVIDENCE.name:
            continue
        if step not in steps:
            steps.append(step)
        numbers[number] = steps.index(step) + 1
    return Plan(tuple(steps)) if len(steps) > len(request.fixed.steps) else None


def as_question(value: Scalar) -> Scalar:
    """Return a reference to the whole question instead of a text; return other values unchanged."""
    return QuestionRef() if isinstance(value, Literal) and isinstance(value.value, str) else value


def checked(plan: Plan, request: PlanRequest) -> Plan:
    """Return a plan after the static checks, continued from the request's fixed steps, if any.

    Raises:
        PlanError: The plan breaks a check, or a replanning repeats a failed call or adds no step.
    """
    if request.failures:
        whole = continued(plan, request)
        if whole is None:
            raise PlanError(
                "The plan repeats a call without results, or adds no call.",
                "Call another tool, or one with other arguments.",
            )
        plan = whole
    request.validate(plan)
    return plan
