"""Calls of function-calling data as plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casewright.errors import InputError, PlanError
from casewright.finetune.instructions.instruction import PlannedQuery
from casewright.finetune.instructions.readers.refusal import Unfit
from casewright.finetune.instructions.words import content_words
from casewright.planner import (
    AnnotatedQuery,
    ListValue,
    Literal,
    Plan,
    PlanRequest,
    QueryRecord,
    QuestionRef,
    Step,
    StepRef,
    violations,
)
from casewright.planner.plan import Value
from casewright.planner.request import Turn
from casewright.tools import NO_EVIDENCE, Toolbox, alias

#: What a rule of the static checks says, and the reason that is counted for it.
_REASONS = (
    ("There is no tool", "a call of a tool that is not declared"),
    ("has no parameter", "an argument that is not declared"),
    ("needs the argument", "a required argument is not given"),
    ("is no run of adjacent words", "an identifier that is no words of the question"),
    ("is none of its choices", "a value that is none of the declared choices"),
    ("steps; at most", "more steps than a plan may have"),
    ("results of", "a field that the results do not declare"),
    ("may not be", "a value of another type than declared"),
    ("is none.", "a value of another type than declared"),
    ("not a list", "a value of another type than declared"),
)


@dataclass(frozen=True, slots=True)
class Call:
    """A call: the tool's own name, and values; a ``StepRef`` stands for an earlier result."""

    tool: str
    arguments: Mapping[str, Any]


def plan_of(calls: Iterable[Call], toolbox: Toolbox) -> Plan:
    """Return the plan of calls; without any, the plan that looks nothing up.

    Empty texts and nulls are left out where an argument is optional.

    Raises:
        Unfit: A value has no form in the plan language.
    """
    steps = []
    for call in calls:
        name = alias(call.tool)
        if name not in toolbox:
            raise Unfit("a call of a tool that is not declared")
        given = []
        for key, value in call.arguments.items():
            known = toolbox[name].parameter(key)
            if value in ("", None):
                if known is not None and known.required:
                    raise Unfit("a required argument is empty")
                continue
            given.append((key, _value(value, known.kind if known else "any")))
        steps.append(Step(name, tuple(given)))
    return Plan(tuple(steps) or (Step(NO_EVIDENCE.name),))


def planned(
    id_: str,
    question: str,
    toolbox: Toolbox,
    calls: Sequence[Call],
    label: str,
    history: Sequence[Turn] = (),
) -> PlannedQuery:
    """Return a query with the plan of these calls, valid for the toolbox.

    Args:
        id_: The query's id.
        question: What is asked.
        toolbox: The tools shown.
        calls: The calls, in order.
        label: The query's class.
        history: Earlier turns.

    Raises:
        Unfit: It is no question, or the calls are no valid plan.
    """
    return _checked(id_, question, toolbox, plan_of(calls, toolbox), label, history)


def asked_with(id_: str, question: str, toolbox: Toolbox, name: str, label: str) -> PlannedQuery:
    """Return a query with the plan that passes the question on to one tool.

    Args:
        id_: The query's id.
        question: What is asked.
        toolbox: The tools shown.
        name: The tool, which has one parameter.
        label: The query's class.

    Raises:
        Unfit: It is no question.
    """
    (parameter,) = toolbox[name].parameters
    plan = Plan((Step(name, ((parameter.name, QuestionRef()),)),))
    return _checked(id_, question, toolbox, plan, label, ())


def _checked(
    id_: str, question: str, toolbox: Toolbox, plan: Plan, label: str, history: Sequence[Turn]
) -> PlannedQuery:
    try:
        request = PlanRequest(question, toolbox, history=history)
    except InputError as error:
        raise Unfit("the question is empty, too long, or holds control characters") from error
    check_plan(request, plan)
    query = AnnotatedQuery(QueryRecord(id=id_, query=question), plan, label)
    return PlannedQuery(query, toolbox, tuple(history))


def check_plan(request: PlanRequest, plan: Plan) -> None:
    """Raise ``Unfit`` with the reason where the plan breaks a static check."""
    found = violations(
        plan,
        request.toolbox,
        question=request.question,
        context=request.context,
        max_steps=request.max_steps,
    )
    for error in found:
        for said, reason in _REASONS:
            if said in error.rule:
                raise Unfit(reason)
        raise Unfit("a plan that breaks a static check")


def grounded(value: Any, question: str) -> bool:
    """Say whether a text of several words has any word of the question; other values have."""
    if not isinstance(value, str) or len(value.split()) < 2:
        return True
    asked = {word[:5] for word in content_words(question)}
    said = {word[:5] for word in content_words(value)}
    return not said or bool(said & asked)


def _value(value: Any, kind: str) -> Value:
    if isinstance(value, StepRef):
        return value
    if isinstance(value, (list, tuple)):
        if any(isinstance(item, (list, tuple, dict)) for item in value):
            raise Unfit("a nested list or an object in a list")
        if not value:
            raise Unfit("an empty list")
        return ListValue(tuple(_scalar(item) for item in value))
    if isinstance(value, str) and kind in ("integer", "number"):
        # Some sets write numbers as texts.
        try:
            value = int(value) if kind == "integer" else float(value)
        except ValueError:
            raise Unfit("a value of another type than declared") from None
    return _scalar(value)


def _scalar(value: Any) -> Literal | StepRef:
    if isinstance(value, StepRef):
        return value
    if isinstance(value, dict):
        raise Unfit("an object as an argument")
    if not isinstance(value, (str, int, float, bool)):
        raise Unfit("a null in a list")
    try:
        return Literal(value)
    except PlanError as error:
        raise Unfit("a number or text that no plan can hold") from error
