"""Budgets of plans: counts the allowed calls of a tool, and removes steps that exceed a budget."""

from __future__ import annotations

from collections.abc import Callable

from casewright.planner.plan import Plan, Step
from casewright.tools import NO_EVIDENCE

#: A function that returns how a plan exceeds a budget, as a sentence; empty if it does not.
BudgetCheck = Callable[[Plan], str]


def unbounded(plan: Plan) -> str:
    """Return an empty text, for requests without a budget."""
    return ""


def max_calls(tool: str, beyond: BudgetCheck, limit: int) -> int:
    """Return how often a plan that calls no other tool can call a tool, up to ``limit`` times."""
    allowed = (n for n in range(limit, 0, -1) if not beyond(Plan((Step(tool),) * n)))
    return next(allowed, 0)


def trimmed(plan: Plan, beyond: BudgetCheck) -> tuple[Plan, list[str]]:
    """Return the plan without the steps that exceed a budget, and a sentence for each removed step.

    Earlier steps have priority. A step that refers to a removed step is removed too. If no step is
    left, the plan calls ``no_evidence``.
    """
    if not beyond(plan):
        return plan, []
    steps: list[Step] = []
    new_numbers: dict[int, int] = {}
    notes: list[str] = []
    for number, step in enumerate(plan.steps, 1):
        missing = [ref.step for ref in step.references() if ref.step not in new_numbers]
        extended = [*steps, step.renumbered(new_numbers)]
        problem = f"it needs s{missing[0]}" if missing else beyond(Plan(tuple(extended)))
        if problem:
            notes.append(f"s{number} ({step.tool}) was left out for the budget: {problem}.")
        else:
            steps = extended
            new_numbers[number] = len(steps)
    return Plan(tuple(steps) or (Step(NO_EVIDENCE.name),)), notes
