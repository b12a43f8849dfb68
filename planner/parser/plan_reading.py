"""Plans as the plan parser writes them: each argument a kind and where it points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from casewright.planner.parser.message import Message
from casewright.planner.parser.schema import Schema
from casewright.planner.plan import ContextRef, Literal, Plan, QuestionRef, StepRef, Value

#: Kinds of an argument. The first six are complete or point to words; the others point to nodes.
OMIT, QUESTION, TRUE, FALSE, SPAN, NUMBER, CHOICE, CONTEXT, STEP = range(9)
KIND_COUNT = 9
#: The first of them, which stand in one row; others are by choice, field and step.
PLAIN = 6
#: Results of a step that can be referred to.
RESULTS = 4
#: Steps that have places of their own, and the longest run of words that is a span.
PLACES, LONGEST = 12, 14


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as it is pointed to.

    Attributes:
        parameter: Its number in the schema.
        kind: One of the kinds.
        spans: The first and last words of every place where its text stands.
        numbers: The message's numbers that have its value.
        node: Of a choice, a context field or a result field: its number among its like.
        step: The step that it refers to, counted from 0.
        index: Which of that step's results.
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
    """A step: its tool's number, and an argument for each of the tool's parameters."""

    tool: int
    arguments: tuple[Argument, ...]


def pointed(
    argument: Argument, message: Message, schema: Schema, words: int, fields: int
) -> tuple[int, int]:
    """Return the first node that an argument points to, and the one past the last.

    Args:
        one: The argument.
        message: Its message.
        schema: The toolbox.
        words: Places of words, before those of context fields and of the toolbox's nodes.
        fields: Places of context fields.
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


def read_plan(plan: Plan, schema: Schema, message: Message) -> list[ReadStep] | None:
    """Return a plan as it is pointed to; ``None`` where a part of it cannot be pointed to."""
    numbers = {tool.name: number for number, tool in enumerate(schema.tools)}
    if any(tool not in numbers for tool in plan.tools):
        return None
    tools = [numbers[tool] for tool in plan.tools]
    steps = []
    for tool, step in zip(tools, plan.steps, strict=True):
        arguments = []
        for slot in schema.parameters_of(tool):
            value = step.argument(schema.parameters[slot][1].name)
            own = _argument(slot, value, tools, schema, message)
            if own is None:
                return None
            arguments.append(own)
        steps.append(ReadStep(tool, tuple(arguments)))
    return steps


def _argument(
    slot: int, value: Value | None, tools: list[int], schema: Schema, message: Message
) -> Argument | None:
    parameter = schema.parameters[slot][1]
    match value:
        case None:
            return Argument(slot)
        case QuestionRef():
            return Argument(slot, QUESTION)
        case Literal(bool(truth)):
            return Argument(slot, TRUE if truth else FALSE)
        case Literal(str(text)):
            if text in parameter.choices:
                pairs = enumerate(schema.choices)
                return Argument(
                    slot, CHOICE, node=next(n for n, own in pairs if own == (slot, text))
                )
            spans = tuple(message.find(text)) or tuple(_closest(text, message))
            return Argument(slot, SPAN, spans=spans) if spans else None
        case Literal(number):
            own = tuple(n for n, mention in enumerate(message.numbers) if mention.value == number)
            return Argument(slot, NUMBER, numbers=own) if own else None
        case ContextRef(name):
            if name not in message.fields:
                return None
            return Argument(slot, CONTEXT, node=message.fields.index(name))
        case StepRef(step, name, index) if 1 <= step <= len(tools) and index < RESULTS:
            owner = (tools[step - 1], name)
            if owner not in schema.results:
                return None
            node = schema.results.index(owner)
            return Argument(slot, STEP, node=node, step=step - 1, index=index)
    return None


def _closest(text: str, message: Message) -> Iterator[tuple[int, int]]:
    """Yield the shortest run of words that has most of the words of a text that is no span."""
    from casewright.planner.parser.message import stem
    from casewright.planner.parser.wording import words_in

    wanted = {stem(word) for word in words_in(text)}
    own = [number for number, word in enumerate(message.stems) if word in wanted]
    if own and 2 * len({message.stems[number] for number in own}) >= len(wanted):
        yield own[0], own[-1]
