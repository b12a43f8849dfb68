"""The tools' examples as cases that are always there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from casewright.errors import PlanError
from casewright.planner.parse import parse_plan
from casewright.planner.plan import Plan, context_fields
from casewright.tools import Toolbox

#: What stands for a context field's value where only its name is known.
GIVEN = "given"


@dataclass(frozen=True, slots=True)
class PlanCase:
    """A question with its plan, and what was known beside it."""

    question: str
    plan: Plan
    context: Mapping[str, Any]


def example_cases(toolbox: Toolbox) -> Iterator[PlanCase]:
    """Yield the tools' examples whose plans can be read."""
    for tool in toolbox:
        if tool.example is None:
            continue
        try:
            plan = parse_plan(tool.example.plan)
        except PlanError:
            # An example is its declarer's own text.
            continue
        yield PlanCase(tool.example.query, plan, dict.fromkeys(context_fields(plan), GIVEN))
