"""Replanning (``mend``): the remaining steps are planned again, once, after steps without results.

Finished steps stay in the plan with their outcomes; the graph's node ``revise`` appends new steps.
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
#: The statuses of a step after which each mode replans.
_STATUSES_BY_MODE: Mapping[str, frozenset[str]] = {
    "off": frozenset(),
    "failure": frozenset({"failed", "timed_out"}),
    "empty": frozenset({"failed", "timed_out", "empty"}),
}
#: The planner reads these reasons instead of a tool's error, which is untrusted text.
_REASON_BY_STATUS = {"empty": "found nothing", "failed": "failed", "timed_out": "took too long"}


def check_mend(mend: Any) -> Mend:
    """Return the mode of replanning; raise ``InputError`` if it does not exist."""
    if mend not in get_args(Mend):
        raise InputError(f"mend is {mend!r}. Give one of {', '.join(get_args(Mend))}.")
    return mend  # type: ignore[no-any-return]


def outcomes_to_mend(mend: Mend, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes after which this mode replans."""
    return [outcome for outcome in outcomes if outcome.status in _STATUSES_BY_MODE[mend]]


def remaining_request(request: PlanRequest, plan: Plan, outcomes: Sequence[Outcome]) -> PlanRequest:
    """Return the request to plan the remaining steps; its ``fixed`` are the steps that are done.

    The toolbox lacks the tools that failed, unless another step of the same tool had results. A
    tool that found nothing may be called with other arguments.
    """
    done = {number for number, outcome in enumerate(outcomes, 1) if outcome.status == "done"}
    done_plan, new_numbers = sub_plan(plan, done)
    failures = {
        plan.steps[number - 1].renumbered(new_numbers): _REASON_BY_STATUS[outcome.status]
        for number, outcome in enumerate(outcomes, 1)
        if outcome.status in _REASON_BY_STATUS
    }
    failed_tools = {item.tool for item in outcomes if item.status in _STATUSES_BY_MODE["failure"]}
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
    plan_numbers = dict(enumerate(done, 1))  # numbers in the plan, by number in the continuation
    steps = list(plan.steps)
    for number, step in enumerate(continuation.steps, 1):
        if number > len(done):
            steps.append(step.renumbered(plan_numbers))
            plan_numbers[number] = len(steps)
    new_plan = Plan(tuple(steps))
    return new_plan if is_valid(new_plan, request) else None


def without_replaced_steps(outcomes: Sequence[Outcome], planned_count: int) -> list[Outcome]:
    """Return the outcomes without the skipped steps whose tool an added step called instead."""
    planned, added = outcomes[:planned_count], outcomes[planned_count:]
    added_tools = {outcome.tool for outcome in added}
    return [
        *(item for item in planned if item.status != "skipped" or item.tool not in added_tools),
        *added,
    ]


def learned_plan(plan: Plan, outcomes: Sequence[Outcome], planned_count: int) -> Plan | None:
    """Return a plan to learn from: the steps with results of a replanned run.

    Replanning added the steps after the first ``planned_count``. Return ``None`` if an added
    step has no results, or if a tool failed, since a failure does not depend on the plan.
    """
    has_failure = any(outcome.status in _STATUSES_BY_MODE["failure"] for outcome in outcomes)
    added = outcomes[planned_count:]
    if has_failure or not added or any(outcome.status != "done" for outcome in added):
        return None
    done = [number for number, outcome in enumerate(outcomes, 1) if outcome.status == "done"]
    return sub_plan(plan, done)[0]
