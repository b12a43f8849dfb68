"""Approval of a plan by a person, after it is planned and before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from casewright.errors import InputError, PlanError
from casewright.graph.limits import BUDGET, Limits
from casewright.graph.outcome import Outcome
from casewright.planner import Plan, parse_plan
from casewright.planner.price import Price
from casewright.tools import Toolbox

#: Plans that wait for approval beside those with a tool that declares it: none, all, or those
#: above a price, such as ``{"calls": 3, "cost": 0.5}``.
Approve = Literal["declared", "always"] | Mapping[str, Any]
#: Most violations, and most characters of an edited plan, that the next card shows.
_VIOLATIONS, SHOWN = 10, 8000
_REPLIES = "Reply yes, no, or the plan as it should be, a step a line."


def check_approve(value: Any) -> None:
    """Raise ``InputError`` unless this is an ``Approve``."""
    if isinstance(value, Mapping) and value and value.keys() <= {*BUDGET}:
        Limits().within(value)
    elif value not in ("declared", "always"):
        raise InputError(
            f'approve={value!r:.80} says of no plan that it needs approval. Give "always", '
            f"\"declared\", or a price by some of {', '.join(BUDGET)}, such as {{'calls': 3}}."
        )


def why_approve(policy: Approve, plan: Plan, price: Price, toolbox: Toolbox) -> str:
    """Return the reason why a plan waits for approval, as a sentence; empty if it does not."""
    declared = {tool for tool in plan.tools if tool in toolbox and toolbox[tool].approval}
    if declared:
        return f"Approval is declared by {', '.join(sorted(declared))}."
    if policy == "always":
        return "Every plan is approved first."
    beyond = Limits().within(policy).excess(price) if isinstance(policy, Mapping) else ""
    return beyond and f"The price is above what runs by itself: {beyond}."


def card(plan: str, planning: Mapping[str, Any], approval: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of the interrupt: the plan and its price, with what was wrong before."""
    return {
        "kind": "approval",
        "why": approval["why"],
        "plan": plan,
        "price": planning["price"],
        "left_out": planning["left_out"],
        "edited": approval.get("edited", ""),
        "violations": list(approval.get("violations", ())),
        "replies": _REPLIES,
    }


@dataclass(frozen=True, slots=True)
class Reply:
    """A person's reply: ``yes``, ``no``, or ``edited`` with the text of a plan."""

    kind: Literal["yes", "no", "edited"]
    text: str = ""


def read_reply(value: Any) -> Reply:
    """Return what a resumption replies: true or "yes", false or "no", else an edited plan."""
    if isinstance(value, Mapping):
        value = value.get("plan")
    if isinstance(value, bool):
        return Reply("yes" if value else "no")
    text = value.strip() if isinstance(value, str) else ""
    if text.casefold() in ("yes", "no"):
        return Reply("yes" if text.casefold() == "yes" else "no")
    return Reply("edited", text)


def edited_plan(
    text: str, violations: Callable[[Plan], Iterable[PlanError]]
) -> tuple[Plan | None, list[str]]:
    """Return the plan of an edited text, or ``None`` with its violations, a sentence each.

    Args:
        text: The text of a plan.
        violations: Yields the errors of a plan.
    """
    try:
        plan = parse_plan(text)
    except PlanError as error:
        return None, [str(error) if text else f"The reply is no plan. {_REPLIES}"]
    wrong = [str(error) for error in islice(violations(plan), _VIOLATIONS)]
    return (None if wrong else plan), wrong


def refused(plan: Plan) -> list[dict[str, Any]]:
    """Return the outcomes of a plan that was not approved: every step was skipped."""
    why = "The plan was not approved."
    return [
        Outcome(f"s{number}", step.tool, "skipped", error=why).to_json()
        for number, step in enumerate(plan.steps, 1)
    ]
