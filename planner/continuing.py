"""Plans whose first steps are fixed: the rest is written anew after steps that found nothing."""

from __future__ import annotations

from collections.abc import Collection

from casewright.errors import PlanError
from casewright.planner.plan import Literal, Plan, QuestionRef, Scalar
from casewright.planner.request import PlanRequest
from casewright.tools import NO_EVIDENCE


def part_of(plan: Plan, numbers: Collection[int]) -> tuple[Plan, dict[int, int]]:
    """Return these steps as a plan of their own, and their new numbers by the old ones.

    The steps must refer to each other only.
    """
    renumbered = {number: new for new, number in enumerate(sorted(numbers), 1)}
    steps = (plan.steps[number - 1].renumbered(renumbered) for number in renumbered)
    return Plan(tuple(steps)), renumbered


def continued(plan: Plan, request: PlanRequest, *, widen: bool = False) -> Plan | None:
    """Return the request's fixed steps, and behind them what else a plan looks up.

    A step of the plan that equals a fixed one stands for it, so any planner can continue a plan,
    also one that knows of no fixed steps.

    Args:
        widen: Replace the texts of a failed call by the whole question.

    Returns:
        ``None`` if the plan repeats a failed call, or looks up nothing else.
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
    """Return the whole question in the place of a text; other values as they are."""
    return QuestionRef() if isinstance(value, Literal) and isinstance(value.value, str) else value


def checked(plan: Plan, request: PlanRequest) -> Plan:
    """Return a plan that passes the static checks, behind the request's fixed steps if it has any.

    Raises:
        PlanError: A check is broken, or a replanning repeats a failed call or adds no step.
    """
    if request.failures:
        whole = continued(plan, request)
        if whole is None:
            raise PlanError(
                "The plan repeats a call without results, or looks up nothing more.",
                "Call another tool, or one with other arguments.",
            )
        plan = whole
    request.validate(plan)
    return plan
