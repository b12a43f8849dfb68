"""Replanning (``mend``) of the remaining steps, once, after steps found nothing or failed.

Finished steps stay in the plan with their outcomes; the node ``revise`` appends steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from casewright.errors import InputError
from casewright.graph.outcome import Outcome
from casewright.planner import Plan, PlanRequest, PlanResult
from casewright.planner.continuing import continued
from casewright.planner.plan import sub_plan
from casewright.planner.reuse import is_valid

Mend = Literal["off", "empty", "failure"]
#: The statuses that make each mode replan.
_STATUSES: Mapping[str, frozenset[str]] = {
    "off": frozenset(),
    "failure": frozenset({"failed", "timed_out"}),
    "empty": frozenset({"failed", "timed_out", "empty"}),
}
#: The planner reads these reasons instead of a tool's error, which is untrusted text.
_REASONS = {"empty": "found nothing", "failed": "failed", "timed_out": "took too long"}


def check_mend(mend: Any) -> Mend:
    """Return the mode of replanning; raise ``InputError`` if it does not exist."""
    if mend not in get_args(Mend):
        raise InputError(f"mend is {mend!r}. Give one of {', '.join(get_args(Mend))}.")
    return mend  # type: ignore[no-any-return]


def outcomes_to_mend(mend: Mend, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes that make this mode replan."""
    return [outcome for outcome in outcomes if outcome.status in _STATUSES[mend]]


def remaining_request(request: PlanRequest, plan: Plan, outcomes: Sequence[Outcome]) -> PlanRequest:
    """Return the request to plan the remaining steps, with the steps that are done as ``fixed``.

    The toolbox lacks the tools that failed, unless another step of the same tool had results. A
    tool that found nothing may be called with other arguments.
    """
    done = {number for number, outcome in enumerate(outcomes, 1) if outcome.status == "done"}
    done_plan, numbers = sub_plan(plan, done)
    failures = {
        plan.steps[number - 1].renumbered(numbers): _REASONS[outcome.status]
        for number, outcome in enumerate(outcomes, 1)
        if outcome.status in _REASONS
    }
    failed_tools = {outcome.tool for outcome in outcomes if outcome.status in _STATUSES["failure"]}
    return replace(
        request,
        toolbox=request.toolbox.without(*(failed_tools - set(done_plan.tools))),
        max_steps=len(done_plan.steps) + max(request.max_steps - len(plan.steps), 0),
        fixed=done_plan,
        failures=failures,
    )


def extended_plan(
    request: PlanRequest,
    remaining: PlanRequest,
    plan: Plan,
    outcomes: Sequence[Outcome],
    result: PlanResult,
) -> Plan | None:
    """Return the plan with the steps of ``result`` added; ``None`` if no valid step is new.

    Args:
        request: The run's request; ``result`` was planned for the request ``remaining``.
    """
    continuation = continued(result.plan, remaining)
    # Confidence 0 marks a fallback plan, which calls any tool with the whole question.
    if continuation is None or result.confidence == 0.0:
        return None
    done = [number for number, outcome in enumerate(outcomes, 1) if outcome.status == "done"]
    numbers = dict(enumerate(done, 1))
    steps = list(plan.steps)
    for number, step in enumerate(continuation.steps, 1):
        if number > len(done):
            steps.append(step.renumbered(numbers))
            numbers[number] = len(steps)
    new_plan = Plan(tuple(steps))
    return new_plan if is_valid(new_plan, request) else None


def without_replaced_steps(outcomes: Sequence[Outcome], planned_count: int) -> list[Outcome]:
    """Return the outcomes, without a skipped step if an added step called the same tool."""
    added_tools = {outcome.tool for outcome in outcomes[planned_count:]}
    return [
        outcome
        for number, outcome in enumerate(outcomes)
        if number >= planned_count or outcome.status != "skipped" or outcome.tool not in added_tools
    ]


def learned_plan(plan: Plan, outcomes: Sequence[Outcome], planned_count: int) -> Plan | None:
    """Return the steps of a replanned run that had results, as a plan to learn from.

    Replanning added the steps after the first ``planned_count``. Return ``None`` if an added
    step had no results, or if a tool failed, since a failure does not depend on the plan.
    """
    has_failure = any(outcome.status in _STATUSES["failure"] for outcome in outcomes)
    added = outcomes[planned_count:]
    if has_failure or not added or any(outcome.status != "done" for outcome in added):
        return None
    done = [number for number, outcome in enumerate(outcomes, 1) if outcome.status == "done"]
    return sub_plan(plan, done)[0]
