"""Approval of a plan by a person, after planning and before the first tool call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Literal

from casewright.errors import InputError, PlanError
from casewright.graph.limits import BUDGET, Limits
from casewright.graph.outcome import Outcome
from casewright.planner import Plan, PlanRequest, parse_plan
from casewright.planner.choices import editable_steps, plan_choices
from casewright.planner.price import Price
from casewright.tools import Toolbox

#: The rule for plans that need approval: "declared" (plans with a tool that declares ``approval``),
#: a mapping such as ``{"calls": 3}`` (also plans above this price), or "always" (all plans).
Approve = Literal["declared", "always"] | Mapping[str, Any]
#: Maximum number of violations in an interrupt, and of characters of the invalid edited plan.
_MAX_VIOLATIONS, _MAX_CHARACTERS = 10, 8000


def check_approve(value: Any) -> None:
    """Raise ``InputError`` unless a value is a valid rule of approval."""
    if isinstance(value, Mapping) and value and value.keys() <= {*BUDGET}:
        Limits().within(value)  # raises if a limit is invalid
    elif value not in ("declared", "always"):
        raise InputError(
            f'approve={value!r:.80} is not a rule of approval. Give "always", "declared", '
            f"or limits of a price ({', '.join(BUDGET)}), such as {{'calls': 3}}."
        )


def declared_reason(plan: Plan, toolbox: Toolbox) -> str:
    """Return a sentence that names a plan's tools that declare ``approval``; "" if none does."""
    tools = sorted({tool for tool in plan.tools if tool in toolbox and toolbox[tool].approval})
    return f"Approval is declared by {', '.join(tools)}." if tools else ""


def approval_reason(rule: Approve, plan: Plan, price: Price, toolbox: Toolbox) -> str:
    """Return a sentence with the reason why a plan needs approval; empty if it needs none."""
    if reason := declared_reason(plan, toolbox):
        return reason
    if rule == "always":
        return "Every plan needs approval."
    excess = Limits().within(rule).excess(price) if isinstance(rule, Mapping) else ""
    return excess and f"The price exceeds the limit for plans without approval: {excess}."


def interrupt_value(
    plan: str,
    planning: Mapping[str, Any],
    approval: Mapping[str, Any],
    request: PlanRequest,
    finished_count: int,
) -> dict[str, Any]:
    """Return the value of the interrupt: plan, price, and the violations of an edited plan.

    The state's ``approval`` has the reason (``why``) and, after an invalid edit, the fields of
    ``read_edited_plan``. Three fields are for the service's plan editor: the ``steps`` (of the
    edited plan, if it can be parsed), the number of ``finished`` steps, which cannot be changed,
    and the ``choices`` for the other steps.
    """
    approval_fields = {"kind": "approval", "plan": plan, "edited": "", "violations": [], **approval}
    return {
        **approval_fields,
        **{name: planning[name] for name in ("price", "left_out")},
        "steps": editable_steps(approval_fields["edited"], plan),
        "finished": finished_count,
        "choices": plan_choices(request),
    }


def read_reply(reply: Any) -> tuple[str, str]:
    """Return ``yes``, ``no`` or ``edited``, and for ``edited`` the text of the plan.

    The reply is a value, or a mapping with the value in ``plan``. True and "yes" approve, false and
    "no" refuse; any other value is an edited plan.
    """
    value = reply.get("plan") if isinstance(reply, Mapping) else reply
    if isinstance(value, bool):
        value = "yes" if value else "no"
    text = value.strip() if isinstance(value, str) else ""
    lower_text = text.casefold()
    return (lower_text, "") if lower_text in ("yes", "no") else ("edited", text)


def read_edited_plan(
    text: str, find_violations: Callable[[Plan], Iterable[PlanError]]
) -> tuple[Plan | None, dict[str, Any]]:
    """Return an edited plan (``None`` if invalid), and the fields ``edited`` and ``violations``."""
    plan = None
    try:
        plan = parse_plan(text)
        messages = [str(error) for error in islice(find_violations(plan), _MAX_VIOLATIONS)]
    except PlanError as error:
        messages = [f"The reply is neither yes, no nor a plan. {error}"]
    return (None if messages else plan), {"edited": text[:_MAX_CHARACTERS], "violations": messages}


def refused_outcomes(plan: Plan) -> list[dict[str, Any]]:
    """Return the outcomes of a plan that was not approved: every step was skipped."""
    return [
        Outcome(f"s{number}", step.tool, "skipped", error="The plan was not approved.").to_json()
        for number, step in enumerate(plan.steps, 1)
    ]
