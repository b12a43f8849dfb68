"""Planning within a budget: the plan, its price, and what was left out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from casewright.errors import InputError
from casewright.graph.limits import Limits
from casewright.planner import Plan, Planner, PlanRequest, Step
from casewright.planner.price import Price, price_plan, trimmed
from casewright.tools import Toolbox
from casewright.tools.body import Body, Work


def plan_within(
    planner: Planner, request: PlanRequest, limits: Limits, measured: Mapping[str, float]
) -> Body[tuple[Plan, dict[str, Any]]]:
    """Plan a request within the budget of its limits.

    The planner sees no tool one call of which is beyond the budget, and no more steps than calls.
    What it writes beyond the budget all the same is left out.

    Args:
        planner: The planner.
        request: The question, with all tools.
        limits: The budgets.
        measured: Seconds of a call by tool, for tools that declare no latency.

    Returns:
        The plan, and JSON-plain how it was made, as in ``Answer.planner``: with its ``price``, and
        with a sentence in ``left_out`` for each step, and each tool, that was.
    """

    def excess(plan: Plan) -> str:
        return limits.excess(price_plan(plan, request.toolbox, measured=measured))

    beyond = {
        tool.name: why for tool in request.toolbox if (why := excess(Plan((Step(tool.name),))))
    }
    bounded = replace(
        request,
        toolbox=request.toolbox.without(*beyond) if beyond else request.toolbox,
        max_steps=int(min(request.max_steps, limits.calls)),
    )
    result = yield Work(lambda: planner.plan(bounded), lambda: planner.aplan(bounded))
    plan = result.plan
    left_out = [
        f"{tool} was not planned with, for the budget: {why}." for tool, why in beyond.items()
    ]
    # A plan of more steps is refused before it runs.
    if len(plan.steps) <= limits.steps:
        plan, beyond_budget = trimmed(plan, excess)
        left_out += beyond_budget
    planning = {
        "name": result.planner,
        "attempts": result.attempts,
        "fallback": result.fallback,
        "milliseconds": round(result.milliseconds, 3),
        "tokens": dict(result.tokens),
        **result.doubt(),
        "price": worst_price(plan, request, limits, measured).to_json(),
        "left_out": left_out,
    }
    return plan, planning


def check_tools(limits: Limits | Mapping[str, Any] | None, toolbox: Toolbox) -> None:
    """Raise ``InputError`` if the limits of a request count the calls of a tool that is not there.

    A misspelt name would bound nothing.
    """
    if isinstance(limits, Limits):
        limits = limits.budget()
    tool_calls = (limits or {}).get("tool_calls", {})
    unknown = [name for name in tool_calls if name not in toolbox] if tool_calls else []
    if unknown:
        raise InputError(
            f"The budget names {str(unknown[0])!r:.80}, which is no tool. Tools are "
            f"{', '.join(toolbox.names)}."
        )


def worst_price(
    plan: Plan, request: PlanRequest, limits: Limits, measured: Mapping[str, float]
) -> Price:
    """Return the price of a plan whose steps need all attempts that the limits allow."""
    attempts = limits.retry.max_attempts
    price = price_plan(plan, request.toolbox, attempts=attempts, measured=measured)
    cost = None if price.cost is None else min(price.cost, limits.cost)
    tokens = None if price.tokens is None else min(price.tokens, limits.tokens)
    return replace(price, cost=cost, tokens=tokens)
