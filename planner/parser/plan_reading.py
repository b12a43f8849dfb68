"""Converts a plan's arguments into pointers to a message and a ``Schema``, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from casewright.planner.parser.message import Message, Number, stem, words_in
from casewright.planner.parser.schema import Schema
from casewright.planner.plan import ContextRef, Literal, Plan, QuestionRef, Step, StepRef, Value
from casewright.tools import Parameter

#: Kinds of an argument; OMIT is an argument that is left out. The first four have no pointer. SPAN
#: and NUMBER point to words; the last three point to a choice, a context field or a result field.
OMIT, QUESTION, TRUE, FALSE, SPAN, NUMBER, CHOICE, CONTEXT, STEP = range(9)
KIND_COUNT = 9
#: Number of the *plain* kinds, OMIT to NUMBER. A plain kind has one logit, other kinds several.
PLAIN_COUNT = 6
#: Number of results of a step to which the parser can refer.
MAX_RESULTS = 4
#: Number of places (indices of steps) that have an embedding, and maximum number of a span's words.
PLACE_COUNT, MAX_SPAN_WORDS = 12, 14


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as pointers into a message and a schema.

    Attributes:
        parameter: Index of the parameter in the schema.
        spans: First and last word of each occurrence of the argument's text in the message. A plan
            that the parser wrote has only one occurrence: the one that the parser chose.
        numbers: Indices of the message's numbers that have the argument's value.
        node: Index of the choice, context field or result field.
        step: Index of the step to which the argument refers.
        index: Index, among this step's results, of the result to which the argument refers.
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
    """A step as pointers: the index of a tool, and an argument for each parameter of the tool."""

    tool: int
    arguments: tuple[Argument, ...]


def pointed_nodes(
    argument: Argument, message: Message, schema: Schema, word_count: int, field_count: int
) -> tuple[int, int]:
    """Return the range of nodes to which an argument points, end excluded; (0, 0) for no node.

    Args:
        word_count: Number of the words' nodes, which come before the other nodes.
        field_count: Number of the context fields' nodes.
    """
    if argument.kind == SPAN:
        return argument.spans[0][0], argument.spans[0][1] + 1
    if argument.kind == NUMBER:
        number = message.numbers[argument.numbers[0]]
        return number.first, number.last + 1
    first_node = {
        CONTEXT: word_count,
        CHOICE: word_count + field_count + schema.first_choice,
        STEP: word_count + field_count + schema.first_result,
    }.get(argument.kind)
    if first_node is None:
        return 0, 0
    return first_node + argument.node, first_node + argument.node + 1


def number_for(parameter: Parameter, number: Number) -> int | float | None:
    """Return a number's value, or ``None`` for a fraction that the parameter does not allow."""
    if number.value == int(number.value):
        return int(number.value)
    return number.value if parameter.fits(number.value) else None


def read_plan(plan: Plan, schema: Schema, message: Message) -> list[ReadStep] | None:
    """Return a plan as pointers; ``None`` if schema and message lack one of its tools or values."""
    index_by_tool = {tool.name: index for index, tool in enumerate(schema.tools)}
    if any(tool not in index_by_tool for tool in plan.tools):
        return None
    step_tools = [index_by_tool[tool] for tool in plan.tools]
    steps = []
    for tool, step in zip(step_tools, plan.steps, strict=True):
        arguments = []
        for parameter in schema.parameters_of(tool):
            value = step.argument(schema.parameters[parameter][1].name)
            argument = _argument(parameter, value, step_tools, schema, message)
            if argument is None:
                return None
            arguments.append(argument)
        steps.append(ReadStep(tool, tuple(arguments)))
    return steps


def _argument(
    parameter: int, value: Value | None, step_tools: list[int], schema: Schema, message: Message
) -> Argument | None:
    """Return a value as an argument; ``step_tools`` has the index of each step's tool."""
    match value:
        case None:
            return Argument(parameter)
        case QuestionRef():
            return Argument(parameter, QUESTION)
        case Literal(bool(truth)):
            return Argument(parameter, TRUE if truth else FALSE)
        case Literal(str(text)):
            if (parameter, text) in schema.choices:
                return Argument(parameter, CHOICE, node=schema.choices.index((parameter, text)))
            spans = tuple(message.find(text)) or _approximate_spans(text, message)
            return Argument(parameter, SPAN, spans=spans) if spans else None
        case Literal(number):
            numbers = tuple(n for n, item in enumerate(message.numbers) if item.value == number)
            return Argument(parameter, NUMBER, numbers=numbers) if numbers else None
        case ContextRef(name) if name in message.fields:
            return Argument(parameter, CONTEXT, node=message.fields.index(name))
        case StepRef(step, name, index) if 1 <= step <= len(step_tools) and index < MAX_RESULTS:
            field = (step_tools[step - 1], name)
            if field in schema.results:
                node = schema.results.index(field)
                return Argument(parameter, STEP, node=node, step=step - 1, index=index)
    return None


def _approximate_spans(text: str, message: Message) -> tuple[tuple[int, int], ...]:
    """Return a span over all words with a stem of the text; none if under half the stems occur."""
    stems = {stem(word) for word in words_in(text)}
    words = [index for index, word_stem in enumerate(message.stems) if word_stem in stems]
    if words and 2 * len({message.stems[index] for index in words}) >= len(stems):
        return ((words[0], words[-1]),)
    return ()


def write_plan(steps: Sequence[ReadStep], schema: Schema, message: Message) -> Plan:
    """Return the plan of steps with pointers; the reverse of ``read_plan``."""
    plan_steps = []
    for step in steps:
        arguments = (
            (schema.parameters[argument.parameter][1].name, _value(argument, schema, message))
            for argument in step.arguments
            if argument.kind != OMIT
        )
        plan_steps.append(Step(schema.tools[step.tool].name, tuple(arguments)))
    return Plan(tuple(plan_steps))


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
