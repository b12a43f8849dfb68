"""The plan for when no other could be had."""

from __future__ import annotations

from casewright.planner.plan import Plan, QuestionRef, Step
from casewright.planner.request import PlanRequest
from casewright.tools import NO_EVIDENCE, Source


def fallback_plan(request: PlanRequest) -> Plan:
    """Return a plan that is valid for any request: ask one tool the whole question.

    The first tool that needs nothing but the question is asked; where there is none, nothing is
    looked up.
    """
    for tool in request.toolbox:
        required = [p for p in tool.parameters if p.required]
        if (
            len(required) == 1
            and Source.QUESTION in required[0].sources
            and required[0].fits(request.question)
        ):
            return Plan((Step(tool.name, ((required[0].name, QuestionRef()),)),))
    return Plan((Step(NO_EVIDENCE.name),))
