"""Calls of function-calling data as plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casewright.errors import InputError, PlanError
from casewright.finetune.instructions.instruction import (
    Instruction,
    PlannedQuery,
    planned_instruction,
)
from casewright.finetune.instructions.readers.records import Refuse, Unfit
from casewright.finetune.instructions.words import stems
from casewright.planner import (
    AnnotatedQuery,
    ListValue,
    Literal,
    Plan,
    PlanRequest,
    QueryRecord,
    Step,
    StepRef,
    violations,
)
from casewright.planner.plan import Value
from casewright.planner.request import Turn
from casewright.tools import NO_EVIDENCE, Toolbox, alias

FORM = "a golden call has another form"
NO_JSON = "a golden call's arguments are no JSON"
NO_TOOL = "a call of a tool that is not declared"
_NO_QUESTION = "the question is empty, too long, or holds control characters"
_NO_PLAN = "a plan that breaks a static check"
_OTHER_TYPE = "a value of another type than declared"
#: What a rule of the static checks says, and the reason that is counted for it.
_REASONS = (
    ("There is no tool", NO_TOOL),
    ("has no parameter", "an argument that is not declared"),
    ("needs the argument", "a required argument is not given"),
    ("is no run of adjacent words", "an identifier that is no words of the question"),
    ("is none of its choices", "a value that is none of the declared choices"),
    ("steps; at most", "more steps than a plan may have"),
    ("results of", "a field that the results do not declare"),
    ("may not be", _OTHER_TYPE),
    ("is none.", _OTHER_TYPE),
    ("not a list", _OTHER_TYPE),
    ("", _NO_PLAN),
)


@dataclass(frozen=True, slots=True)
class Call:
    """A call: the tool's own name, and values; a ``StepRef`` stands for an earlier result."""

    tool: str
    arguments: Mapping[str, Any]


def instruction_of(
    id_: str, source: str, made: Callable[[], PlannedQuery], refuse: Refuse, of: str = ""
) -> Iterator[Instruction]:
    """Yield the instruction that is made of a record, or tell why there is none.

    Args:
        source: The reader's name, the file and the place in it.
        made: Returns the query and its plan; raises ``Unfit`` where the record does not fit.
    """
    try:
        yield planned_instruction(id_, source, made())
    except Unfit as unfit:
        refuse(f"{of}{unfit}")
    except PlanError:
        refuse(f"{of}{_NO_PLAN}")


def planned(
    id_: str,
    question: str,
    toolbox: Toolbox,
    calls: Iterable[Call] | Plan,
    label: str,
    history: Sequence[Turn] = (),
) -> PlannedQuery:
    """Return a query with the plan of these calls, valid for the toolbox.

    Args:
        calls: The calls, in order, or the plan; without any, nothing is looked up.

    Raises:
        Unfit: It is no question, or the calls are no valid plan.
    """
    plan = calls if isinstance(calls, Plan) else _plan_of(calls, toolbox)
    try:
        request = PlanRequest(question, toolbox, history=history)
    except InputError as error:
        raise Unfit(_NO_QUESTION) from error
    for broken in violations(
        plan, toolbox, question=question, context={}, max_steps=request.max_steps
    ):
        raise Unfit(next(reason for said, reason in _REASONS if said in broken.rule))
    query = AnnotatedQuery(QueryRecord(id=id_, query=question), plan, label)
    return PlannedQuery(query, toolbox, tuple(history))


def _plan_of(calls: Iterable[Call], toolbox: Toolbox) -> Plan:
    """Return the plan of calls; empty texts and nulls are left out where they are optional."""
    steps = []
    for call in calls:
        name = alias(call.tool)
        if name not in toolbox:
            raise Unfit(NO_TOOL)
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


def grounded(value: Any, question: str) -> bool:
    """Say whether a text of several words has any word of the question; other values have."""
    if not isinstance(value, str) or len(value.split()) < 2:
        return True
    said = stems(value)
    return not said or bool(said & stems(question))


def _value(value: Any, kind: str) -> Value:
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
            raise Unfit(_OTHER_TYPE) from None
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
