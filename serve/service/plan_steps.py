"""A plan's text as the steps that a graph is drawn of."""

from __future__ import annotations

from typing import Any

from casewright.errors import PlanError
from casewright.planner import parse_plan


def plan_steps(text: str) -> list[dict[str, Any]]:
    """Return a plan's steps, JSON-plain: ``id``, ``tool``, ``call``, and the ids that it ``needs``.

    Raises:
        PlanError: The text is no plan.
    """
    return [
        {
            "id": f"s{number}",
            "tool": step.tool,
            "call": str(step),
            "needs": [f"s{needed}" for needed in sorted({one.step for one in step.references()})],
        }
        for number, step in enumerate(parse_plan(text).steps, 1)
    ]


def steps_of(text: str | None) -> list[dict[str, Any]]:
    """Return a plan's steps as ``plan_steps`` does; none where there is no plan, or it is none."""
    try:
        return plan_steps(text) if text else []
    except PlanError:
        return []
