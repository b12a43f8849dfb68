"""Plans within a budget: what a planner may still write, and what is left out of its plan."""

from __future__ import annotations

from collections.abc import Callable

from casewright.planner.plan import Plan, Step
from casewright.tools import NO_EVIDENCE

#: Says what of a plan is beyond a budget; empty if nothing is.
Beyond = Callable[[Plan], str]


def unbounded(plan: Plan) -> str:
    """Return that nothing of a plan is beyond the budget: there is none."""
    return ""


def most_calls(tool: str, beyond: Beyond, most: int) -> int:
    """Return how many calls of one tool, ``most`` at most, are within a budget by themselves."""
    fits = (n for n in range(most, 0, -1) if not beyond(Plan((Step(tool),) * n)))
    return next(fits, 0)


def trimmed(plan: Plan, beyond: Beyond) -> tuple[Plan, list[str]]:
    """Return the plan without the steps that are beyond a budget, and a sentence for each of them.

    Earlier steps come first; a step that refers to one that was left out is left out too.

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
