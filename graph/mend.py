"""Replanning (``mend``): after steps without results, a planner adds steps, at most once in a run.

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
#: The statuses of a step that make a run replan, by mode.
_STATUSES_BY_MODE: Mapping[str, frozenset[str]] = {
    "off": frozenset(),
    "failure": frozenset({"failed", "timed_out"}),
    "empty": frozenset({"failed", "timed_out", "empty"}),
}
#: The planner reads these reasons instead of a tool's error, which is untrusted text.
_REASON_BY_STATUS = {"empty": "found nothing", "failed": "failed", "timed_out": "took too long"}


def check_mend(mend: Any) -> Mend:
    """Return a mode of replanning; raise ``InputError`` if the mode is unknown."""
    if mend not in get_args(Mend):
        raise InputError(f"mend is {mend!r}. Give one of {', '.join(get_args(Mend))}.")
    return mend  # type: ignore[no-any-return]


def outcomes_to_mend(mend: Mend, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes that make a run with this mode replan."""
    return [outcome for outcome in outcomes if outcome.status in _STATUSES_BY_MODE[mend]]


def replan_request(request: PlanRequest, plan: Plan, outcomes: Sequence[Outcome]) -> PlanRequest:
    """Return the request for additional steps; its ``fixed`` steps are those with results.

    Its toolbox lacks the tools that failed, unless another step of the same tool had results. A
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
    new_request: PlanRequest,
    plan: Plan,
    outcomes: Sequence[Outcome],
    result: PlanResult,
) -> Plan | None:
    """Return the plan with the new steps of ``result``; ``None`` if none is new, or one is invalid.

    Args:
        request: The run's request.
        new_request: The request for which ``result`` was planned; see ``replan_request``.
    """
    continuation = continued(result.plan, new_request)
    # Confidence 0 marks a fallback plan, which passes the whole question to some tool.
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


def without_replaced_steps(outcomes: Sequence[Outcome], first_plan_length: int) -> list[Outcome]:
    """Return the outcomes, but leave out a skipped step if an added step called the same tool."""
    first, added = outcomes[:first_plan_length], outcomes[first_plan_length:]
    added_tools = {outcome.tool for outcome in added}
    return [
        *(item for item in first if item.status != "skipped" or item.tool not in added_tools),
        *added,
    ]


def learned_plan(plan: Plan, outcomes: Sequence[Outcome], first_plan_length: int) -> Plan | None:
    """Return a plan to learn from: the steps with results of a replanned run.

    The first ``first_plan_length`` steps are from the first plan; replanning added the others.
    Return ``None`` if an added step has no results, or if a tool failed, since a failure does not
    depend on the plan.
    """
    has_failure = any(outcome.status in _STATUSES_BY_MODE["failure"] for outcome in outcomes)
    added = outcomes[first_plan_length:]
    if has_failure or not added or any(outcome.status != "done" for outcome in added):
        return None
    done = [number for number, outcome in enumerate(outcomes, 1) if outcome.status == "done"]
    return sub_plan(plan, done)[0]
