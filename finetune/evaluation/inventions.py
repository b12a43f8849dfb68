"""What a planner invented, by kind (REAPER, Joshi et al. 2024, section 5 and Figures 3 to 5).

The paper tells of steps such as ``Compare``, which no tool does; of tools that training had and the
prompt lacks (its Table 3); and of a product's id that stands nowhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from casewright.errors import PlanError
from casewright.finetune.evaluation.item import EvaluationItem
from casewright.finetune.evaluation.named_tools import unknown_tools
from casewright.planner import PlanResult, parse_plan

#: A tool that no toolbox has; one that others have, and this one lacks; an argument that the tool
#: does not declare, may not take from there, or that refers to what is not there.
STEP, ABSENT, ARGUMENT = "step", "absent", "argument"


def known_tools(items: Iterable[EvaluationItem]) -> frozenset[str]:
    """Return the tools that any of several items has, or needs."""
    found: set[str] = set()
    for item in items:
        found |= {tool.name for tool in item.request.toolbox} | set(item.query.plan.tools)
    return frozenset(found)


def inventions(
    item: EvaluationItem, result: PlanResult | None, known: Collection[str]
) -> frozenset[str]:
    """Return the kinds of what a planner invented in what it wrote.

    Args:
        item: What was asked.
        result: The answer; of one that raised, nothing is known.
        known: The tools of all toolboxes.
    """
    if result is None:
        return frozenset()
    unknown = unknown_tools(result, item.request.toolbox)
    if unknown:
        return frozenset(ABSENT if name in known else STEP for name in unknown)
    try:
        plan = parse_plan(result.written) if result.written else result.plan
    except PlanError:
        return frozenset()
    try:
        item.request.validate(plan)
    except PlanError:
        return frozenset({ARGUMENT})
    return frozenset()
