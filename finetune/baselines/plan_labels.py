"""What the classifiers are asked of a plan: yes-or-no questions."""

from __future__ import annotations

from collections import Counter

from casewright.planner import Literal, Plan, QuestionRef
from casewright.planner.shape import feeds


def plan_labels(plan: Plan) -> frozenset[str]:
    """Return what holds of a plan.

    Of each tool: whether it is used, and more than once. Of each of its arguments: whether it is
    the question, words of it, a field of the context or another tool's result. Of the whole: how
    many steps are there for their own sake, since no other step needs their results.
    """
    counts = Counter(plan.tools)
    needed = {reference.step for step in plan.steps for reference in step.references()}
    asked = sum(number not in needed for number in range(1, len(plan.steps) + 1))
    return frozenset(
        [
            *(f"uses {tool}" for tool in counts),
            *(f"repeats {tool}" for tool, count in counts.items() if count > 1),
            *feeds(plan),
            *_words(plan),
            f"asks {asked}",
        ]
    )


def _words(plan: Plan) -> list[str]:
    """Return which arguments are the question, and which are a literal of the plan's."""
    kinds = {QuestionRef: "question", Literal: "literal"}
    return [
        f"{step.tool}.{name}<{kinds[type(value)]}"
        for step in plan.steps
        for name, value in step.arguments
        if type(value) in kinds
    ]
