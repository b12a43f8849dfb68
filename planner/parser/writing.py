"""Plans that were pointed to, written in the plan language."""

from __future__ import annotations

from collections.abc import Sequence

from casewright.planner.parser.message import Message
from casewright.planner.parser.options import number_for
from casewright.planner.parser.plan_reading import (
    CHOICE,
    CONTEXT,
    FALSE,
    NUMBER,
    OMIT,
    QUESTION,
    SPAN,
    TRUE,
    Argument,
    ReadStep,
)
from casewright.planner.parser.schema import Schema
from casewright.planner.plan import (
    ContextRef,
    Literal,
    Plan,
    QuestionRef,
    Step,
    StepRef,
    Value,
)


def written(steps: Sequence[ReadStep], schema: Schema, message: Message) -> Plan:
    """Return the plan of steps that were pointed to."""
    return Plan(
        tuple(
            Step(
                schema.tools[step.tool].name,
                tuple(
                    (schema.parameters[one.parameter][1].name, _value(one, schema, message))
                    for one in step.arguments
                    if one.kind != OMIT
                ),
            )
            for step in steps
        )
    )


def _value(one: Argument, schema: Schema, message: Message) -> Value:
    if one.kind == QUESTION:
        return QuestionRef()
    if one.kind in (TRUE, FALSE):
        return Literal(one.kind == TRUE)
    if one.kind == SPAN:
        return Literal(message.text(*one.spans[0]))
    if one.kind == NUMBER:
        number = number_for(schema.parameters[one.parameter][1], message.numbers[one.numbers[0]])
        assert number is not None
        return Literal(number)
    if one.kind == CHOICE:
        return Literal(schema.choices[one.node][1])
    if one.kind == CONTEXT:
        return ContextRef(message.fields[one.node])
    return StepRef(one.step + 1, schema.results[one.node][1], one.index)
