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
                    (
                        schema.parameters[argument.parameter][1].name,
                        _value(argument, schema, message),
                    )
                    for argument in step.arguments
                    if argument.kind != OMIT
                ),
            )
            for step in steps
        )
    )


def _value(argument: Argument, schema: Schema, message: Message) -> Value:
    if argument.kind == QUESTION:
        return QuestionRef()
    if argument.kind in (TRUE, FALSE):
        return Literal(argument.kind == TRUE)
    if argument.kind == SPAN:
        return Literal(message.text(*argument.spans[0]))
    if argument.kind == NUMBER:
        number = number_for(
            schema.parameters[argument.parameter][1], message.numbers[argument.numbers[0]]
        )
        assert number is not None
        return Literal(number)
    if argument.kind == CHOICE:
        return Literal(schema.choices[argument.node][1])
    if argument.kind == CONTEXT:
        return ContextRef(message.fields[argument.node])
    return StepRef(argument.step + 1, schema.results[argument.node][1], argument.index)
