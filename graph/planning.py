"""Planning within the budget and the deadline of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isinf
from typing import Any

from casewright.errors import InputError
from casewright.graph import traces
from casewright.graph.limits import Limits
from casewright.planner import Plan, Planner, PlanRequest, PlanResult, Step
from casewright.planner.budget import BudgetCheck, trimmed
from casewright.planner.fallback import FallbackPlanner, fallback_result
from casewright.tools import Toolbox
from casewright.tools.body import Body


def plan_within(
    planner: Planner, request: PlanRequest, limits: Limits, latencies: Mapping[str, float]
) -> Body[tuple[Plan, dict[str, Any]]]:
    """Plan a request within the budget of the limits.

    A tool is hidden from the planner if a single call of the tool exceeds the budget. The budget's
    number of calls also limits the plan's steps. Steps that still exceed the budget are left out.

    ``latencies`` has measured seconds per call, by tool name, for tools that declare no latency.

    Returns:
        The plan, and a JSON object as in ``Answer.planner``, with the plan's ``price``. The
        object's ``left_out`` has a sentence for each step and each tool that was left out.
    """

    def excess(plan: Plan) -> str:
        return limits.excess(plan.price(request.toolbox, measured=latencies))

    allowed_request, hidden_tools = budget_request(request, limits, excess)
    result = yield from plan_in_time(planner, allowed_request, limits.deadline)
    plan = result.plan
    left_out = [
        f"{tool} was hidden from the planner, for the budget: {reason}."
        for tool, reason in hidden_tools.items()
    ]
    # A plan with more steps than allowed is not trimmed: the executor refuses it.
    if len(plan.steps) <= limits.steps:
        plan, removal_texts = trimmed(plan, excess)
        left_out += removal_texts
    attempts = limits.retry.max_attempts
    price = plan.price(request.toolbox, attempts=attempts, measured=latencies)
    return plan, {**result.to_json(), "price": price.to_json(), "left_out": left_out}


def budget_request(
    request: PlanRequest, limits: Limits, excess: BudgetCheck, earlier_calls: int = 0
) -> tuple[PlanRequest, dict[str, str]]:
    """Return the request within a budget, and the limit that each removed tool exceeds, by tool.

    Args:
        limits: The budget; if it has no limit, the request is returned unchanged.
        excess: Returns the limit that a plan and the calls so far exceed together; empty if none.
        earlier_calls: Number of calls so far that are not steps of ``request.fixed``.
    """
    if not limits.budget():
        return request, {}
    hidden_tools = {
        tool.name: limit for tool in request.toolbox if (limit := excess(Plan((Step(tool.name),))))
    }
    toolbox = request.toolbox.without(*hidden_tools)
    max_steps = int(min(request.max_steps, limits.calls - earlier_calls))
    max_steps = max(max_steps, len(request.fixed.steps) + 1)
    return replace(request, toolbox=toolbox, max_steps=max_steps, excess=excess), hidden_tools


def plan_in_time(planner: Planner, request: PlanRequest, seconds: float) -> Body[PlanResult]:
    """Plan a request; if the planner takes more than ``seconds``, return the fallback plan."""
    try:
        limit = None if isinf(seconds) else seconds
        return (yield from traces.traced_plan(planner, request, limit))
    except TimeoutError:
        # Without a limit, the planner itself raised the error.
        if isinf(seconds):
            raise
        fallback = replace(FallbackPlanner().plan(request), confidence=0.0)
        reason = f"The run's deadline left {seconds:g} s for planning."
        return fallback_result(planner.name, reason, fallback, milliseconds=seconds * 1000)


def check_tools(limits: Limits | Mapping[str, Any] | None, toolbox: Toolbox) -> None:
    """Raise ``InputError`` if the limits of a request name a tool that the toolbox lacks."""
    bounds = limits.budget() if isinstance(limits, Limits) else limits or {}
    for name in bounds.get("tool_calls", {}):
        if name not in toolbox:
            raise InputError(
                f"The budget names an unknown tool, {str(name)!r:.80}. Tools are "
                f"{', '.join(toolbox.names)}."
            )
