"""Budgets of plans: the calls that a budget allows, and plans cut down to a budget."""

from __future__ import annotations

from collections.abc import Callable

from casewright.planner.plan import Plan, Step
from casewright.tools import NO_EVIDENCE

#: Returns a sentence on how a plan exceeds a budget; empty if it does not.
Beyond = Callable[[Plan], str]


def unbounded(plan: Plan) -> str:
    """Return an empty text, for requests without a budget."""
    return ""


def max_calls(tool: str, beyond: Beyond, most: int) -> int:
    """Return the number of calls, up to ``most``, that a budget allows for a tool alone."""
    fits = (n for n in range(most, 0, -1) if not beyond(Plan((Step(tool),) * n)))
    return next(fits, 0)


def trimmed(plan: Plan, beyond: Beyond) -> tuple[Plan, list[str]]:
    """Return the plan without the steps that exceed a budget, and a sentence for each removed step.

    Earlier steps have priority; a step that refers to a removed step is removed too.

    Args:
        plan: The plan.
        beyond: The budget.
    """
    if not beyond(plan):
        return plan, []
    steps: list[Step] = []
    numbers: dict[int, int] = {}
    left_out: list[str] = []
    for number, step in enumerate(plan.steps, 1):
        lacking = [ref.step for ref in step.references() if ref.step not in numbers]
        longer = [*steps, step.renumbered(numbers)]
        why = f"it needs s{lacking[0]}" if lacking else beyond(Plan(tuple(longer)))
        if why:
            left_out.append(f"s{number} ({step.tool}) was left out for the budget: {why}.")
        else:
            steps = longer
            numbers[number] = len(steps)
    return Plan(tuple(steps) or (Step(NO_EVIDENCE.name),)), left_out
