"""Finds how many calls of a tool a budget allows, and removes steps that exceed the budget."""

from __future__ import annotations

from collections.abc import Callable

from casewright.planner.plan import Plan, Step
from casewright.tools import NO_EVIDENCE

#: Returns a sentence that says how a plan exceeds a budget, or "" if the plan does not exceed it.
BudgetCheck = Callable[[Plan], str]


def unbounded(plan: Plan) -> str:
    """Return an empty text; this is the budget check of requests without a budget."""
    return ""


def max_calls(tool: str, excess: BudgetCheck, limit: int) -> int:
    """Return how many calls, up to ``limit``, a budget allows in a plan of ``tool`` only."""
    counts = range(limit, 0, -1)
    return next((n for n in counts if not excess(Plan((Step(tool),) * n))), 0)


def trimmed(plan: Plan, excess: BudgetCheck) -> tuple[Plan, list[str]]:
    """Return the plan without the steps that exceed a budget, and a sentence for each removed step.

    Earlier steps have priority. A step that refers to a removed step is removed too. If no step is
    left, the plan calls ``no_evidence``.
    """
    if not excess(plan):
        return plan, []
    steps: list[Step] = []
    new_numbers: dict[int, int] = {}
    notes: list[str] = []
    for number, step in enumerate(plan.steps, 1):
        missing = [ref.step for ref in step.references() if ref.step not in new_numbers]
        extended = [*steps, step.renumbered(new_numbers)]
        problem = f"it needs s{missing[0]}" if missing else excess(Plan(tuple(extended)))
        if problem:
            notes.append(f"s{number} ({step.tool}) was left out for the budget: {problem}.")
        else:
            steps = extended
            new_numbers[number] = len(steps)
    return Plan(tuple(steps) or (Step(NO_EVIDENCE.name),)), notes
