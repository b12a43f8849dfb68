"""Converts plans to pointers into a message and a toolbox, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from casewright.planner.parser.message import Message, Number, stem, words_in
from casewright.planner.parser.schema import Schema
from casewright.planner.plan import ContextRef, Literal, Plan, QuestionRef, Step, StepRef, Value
from casewright.tools import Parameter

#: Kinds of an argument. The first six need no pointer, or point to words; the others point to a
#: node: a choice, a context field or a result field.
OMIT, QUESTION, TRUE, FALSE, SPAN, NUMBER, CHOICE, CONTEXT, STEP = range(9)
KIND_COUNT = 9
#: Number of these first kinds, which have one logit each; the other kinds have one for each node.
PLAIN = 6
#: Number of results of a step to which the parser can refer.
RESULTS = 4
#: Number of steps with embeddings, and maximum number of words of a span.
PLACES, LONGEST = 12, 14


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as pointers into a message and a schema.

    Attributes:
        parameter: Number of its parameter in the schema.
        kind: One of the kinds above.
        spans: First and last word of every occurrence of its text; in a plan that is being written,
            of the one that was chosen.
        numbers: Indices of the message's numbers that have its value.
        node: Number of its choice, context field or result field.
        step: The step to which it refers, counted from 0.
        index: Index of the result of that step.
    """

    parameter: int
    kind: int = OMIT
    spans: tuple[tuple[int, int], ...] = ()
    numbers: tuple[int, ...] = ()
    node: int = 0
    step: int = 0
    index: int = 0


@dataclass(frozen=True, slots=True)
class ReadStep:
    """A step: the index of its tool, and an argument for each parameter of the tool."""

    tool: int
    arguments: tuple[Argument, ...]


def pointed(
    argument: Argument, message: Message, schema: Schema, words: int, fields: int
) -> tuple[int, int]:
    """Return the range of nodes to which an argument points, without its end; (0, 0) for none.

    Args:
        words: Number of nodes of words, which come before those of context fields and toolbox.
        fields: Number of nodes of context fields.
    """
    if argument.kind == SPAN:
        return argument.spans[0][0], argument.spans[0][1] + 1
    if argument.kind == NUMBER:
        number = message.numbers[argument.numbers[0]]
        return number.first, number.last + 1
    first = {
        CONTEXT: words,
        CHOICE: words + fields + schema.first_choice,
        STEP: words + fields + schema.first_result,
    }.get(argument.kind)
    return (0, 0) if first is None else (first + argument.node, first + argument.node + 1)


def number_for(parameter: Parameter, number: Number) -> int | float | None:
    """Return a number as a literal, whole ones as integers; ``None`` if no fraction is allowed."""
    if number.value == int(number.value):
        return int(number.value)
    return number.value if parameter.fits(number.value) else None


def read_plan(plan: Plan, schema: Schema, message: Message) -> list[ReadStep] | None:
    """Return a plan as pointers; ``None`` if a tool or the value of an argument is not found."""
    numbers = {tool.name: number for number, tool in enumerate(schema.tools)}
    if any(tool not in numbers for tool in plan.tools):
        return None
    tools = [numbers[tool] for tool in plan.tools]
    steps = []
    for tool, step in zip(tools, plan.steps, strict=True):
        arguments = []
        for slot in schema.parameters_of(tool):
            value = step.argument(schema.parameters[slot][1].name)
            argument = _argument(slot, value, tools, schema, message)
            if argument is None:
                return None
            arguments.append(argument)
        steps.append(ReadStep(tool, tuple(arguments)))
    return steps


def _argument(
    slot: int, value: Value | None, tools: list[int], schema: Schema, message: Message
) -> Argument | None:
    match value:
        case None:
            return Argument(slot)
        case QuestionRef():
            return Argument(slot, QUESTION)
        case Literal(bool(truth)):
            return Argument(slot, TRUE if truth else FALSE)
        case Literal(str(text)):
            if (slot, text) in schema.choices:
                return Argument(slot, CHOICE, node=schema.choices.index((slot, text)))
            spans = tuple(message.find(text)) or _closest(text, message)
            return Argument(slot, SPAN, spans=spans) if spans else None
        case Literal(number):
            equal = tuple(n for n, mention in enumerate(message.numbers) if mention.value == number)
            return Argument(slot, NUMBER, numbers=equal) if equal else None
        case ContextRef(name) if name in message.fields:
            return Argument(slot, CONTEXT, node=message.fields.index(name))
        case StepRef(step, name, index) if 1 <= step <= len(tools) and index < RESULTS:
            owner = (tools[step - 1], name)
            if owner in schema.results:
                node = schema.results.index(owner)
                return Argument(slot, STEP, node=node, step=step - 1, index=index)
    return None


def _closest(text: str, message: Message) -> tuple[tuple[int, int], ...]:
    """Return the span from the first to the last word of a text, if half of its stems occur."""
    stems = {stem(word) for word in words_in(text)}
    words = [number for number, word in enumerate(message.stems) if word in stems]
    if words and 2 * len({message.stems[number] for number in words}) >= len(stems):
        return ((words[0], words[-1]),)
    return ()


def write_plan(steps: Sequence[ReadStep], schema: Schema, message: Message) -> Plan:
    """Return the plan of steps with pointers."""
    written = []
    for step in steps:
        arguments = (
            (schema.parameters[argument.parameter][1].name, _value(argument, schema, message))
            for argument in step.arguments
            if argument.kind != OMIT
        )
        written.append(Step(schema.tools[step.tool].name, tuple(arguments)))
    return Plan(tuple(written))


def _value(argument: Argument, schema: Schema, message: Message) -> Value:
    if argument.kind == QUESTION:
        return QuestionRef()
    if argument.kind in (TRUE, FALSE):
        return Literal(argument.kind == TRUE)
    if argument.kind == SPAN:
        return Literal(message.text(*argument.spans[0]))
    if argument.kind == NUMBER:
        parameter = schema.parameters[argument.parameter][1]
        number = number_for(parameter, message.numbers[argument.numbers[0]])
        assert number is not None
        return Literal(number)
    if argument.kind == CHOICE:
        return Literal(schema.choices[argument.node][1])
    if argument.kind == CONTEXT:
        return ContextRef(message.fields[argument.node])
    return StepRef(argument.step + 1, schema.results[argument.node][1], argument.index)
