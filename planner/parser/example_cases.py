"""Converts the tools' examples into plan cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from casewright.errors import PlanError
from casewright.planner.parse import parse_plan
from casewright.planner.plan import Plan, context_fields
from casewright.tools import Toolbox

#: Value of a context field if only the field's name is known.
PLACEHOLDER = "given"


@dataclass(frozen=True, slots=True)
class PlanCase:
    """A question with its plan and its context."""

    question: str
    plan: Plan
    context: Mapping[str, Any]


def example_cases(toolbox: Toolbox) -> Iterator[PlanCase]:
    """Yield the tools' examples as plan cases, except examples whose plans cannot be parsed."""
    for example in (tool.example for tool in toolbox if tool.example is not None):
        try:
            plan = parse_plan(example.plan)
        except PlanError:
            # Examples are not checked when tools are declared.
            continue
        yield PlanCase(example.query, plan, dict.fromkeys(context_fields(plan), PLACEHOLDER))
