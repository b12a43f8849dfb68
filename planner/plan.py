"""Data types of the plan language: values, steps and plans."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from casewright.errors import PlanError
from casewright.planner.price import Price, price_of
from casewright.tools import Toolbox


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """Constant in a plan: a text, a number or a boolean.

    Two literals are equal if value and type are equal: ``1``, ``1.0`` and ``true`` differ. Raise
    ``PlanError`` if a number is not finite or has more than 64 bits, or a text has a lone
    surrogate.
    """

    value: str | int | float | bool

    def __post_init__(self) -> None:
        if type(self.value) is int and not -(2**63) <= self.value < 2**63:
            raise PlanError("A number has more than 64 bits.", "Write a number of ordinary size.")
        if isinstance(self.value, float) and not math.isfinite(self.value):
            raise PlanError("A number is not finite.", "Write a number of ordinary size.")
        if isinstance(self.value, str) and not self.value.isascii():
            try:
                self.value.encode()
            except UnicodeEncodeError:
                raise PlanError(
                    "A text holds half of a surrogate pair.", "Write whole characters."
                ) from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))

    def __str__(self) -> str:
        return json.dumps(self.value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class QuestionRef:
    """Reference to the user's question, verbatim."""

    def __str__(self) -> str:
        return "question"


@dataclass(frozen=True, slots=True)
class ContextRef:
    """Reference to a field of the request's context."""

    field: str

    def __str__(self) -> str:
        return f"context.{self.field}"


@dataclass(frozen=True, slots=True)
class StepRef:
    """Reference to a field of an earlier step's result; ``step`` begins at 1, ``index`` at 0."""

    step: int
    field: str
    index: int = 0

    def __str__(self) -> str:
        index = f"[{self.index}]" if self.index else ""
        return f"s{self.step}{index}.{self.field}"


Scalar = Literal | QuestionRef | ContextRef | StepRef


@dataclass(frozen=True, slots=True)
class ListValue:
    """List of scalars; lists are not nested."""

    items: tuple[Scalar, ...]

    def __str__(self) -> str:
        return "[" + ", ".join(map(str, self.items)) + "]"


Value = Scalar | ListValue


@dataclass(frozen=True, slots=True)
class Step:
    """Call of a tool; arguments are pairs of name and value, in the written order."""

    tool: str
    arguments: tuple[tuple[str, Value], ...] = ()

    def argument(self, name: str) -> Value | None:
        """Return the value of the argument with this name, or ``None``."""
        return next((value for key, value in self.arguments if key == name), None)

    def scalars(self) -> Iterator[Scalar]:
        """Yield every scalar of the arguments, including items of lists."""
        for _, value in self.arguments:
            yield from value.items if isinstance(value, ListValue) else (value,)

    def references(self) -> Iterator[StepRef]:
        """Yield every reference to another step, including items of lists."""
        return (value for value in self.scalars() if isinstance(value, StepRef))

    def mapped(self, change: Callable[[Scalar], Scalar]) -> Step:
        """Return the step with ``change`` applied to every scalar, including items of lists."""

        def map_value(value: Value) -> Value:
            if isinstance(value, ListValue):
                return ListValue(tuple(map(change, value.items)))
            return change(value)

        return Step(self.tool, tuple((name, map_value(value)) for name, value in self.arguments))

    def renumbered(self, numbers: Mapping[int, int]) -> Step:
        """Return the step with new step numbers in its references; ``numbers`` maps old to new."""

        def renumber(value: Scalar) -> Scalar:
            if not isinstance(value, StepRef):
                return value
            return StepRef(numbers.get(value.step, value.step), value.field, value.index)

        return self.mapped(renumber)

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value}" for name, value in self.arguments)
        return f"{self.tool}({arguments})"


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of tool calls; step N is ``steps[N - 1]``, and ``str(plan)`` is the text form."""

    steps: tuple[Step, ...]

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools, in the order of the steps."""
        return tuple(step.tool for step in self.steps)

    def price(
        self, toolbox: Toolbox, *, attempts: int = 1, measured: Mapping[str, float] | None = None
    ) -> Price:
        """Return the price of the plan, which need not be valid.

        Args:
            attempts: Maximum number of calls of each step; multiplies cost and tokens.
            measured: Measured seconds of a call, by tool, for tools that declare no latency.
        """
        steps = [(step.tool, [ref.step for ref in step.references()]) for step in self.steps]
        return price_of(steps, toolbox, attempts=attempts, latencies=measured)

    def __str__(self) -> str:
        return format_plan(self)


def context_fields(plan: Plan) -> list[str]:
    """Return the sorted names of the context fields that a plan needs."""
    values = [value for step in plan.steps for value in step.scalars()]
    return sorted({value.field for value in values if isinstance(value, ContextRef)})


def text_literals(plan: Plan) -> list[tuple[int, str, str]]:
    """Return step index, parameter and text of each text literal that is not in a list."""
    return [
        (index, name, value.value)
        for index, step in enumerate(plan.steps)
        for name, value in step.arguments
        if isinstance(value, Literal) and isinstance(value.value, str)
    ]


def with_literals(plan: Plan, texts: Mapping[tuple[int, str], str]) -> Plan:
    """Return the plan with new text literals; ``texts`` has them by step index and parameter."""
    literals = {key: Literal(text) for key, text in texts.items()}
    steps = []
    for index, step in enumerate(plan.steps):
        arguments = [(name, literals.get((index, name), value)) for name, value in step.arguments]
        steps.append(Step(step.tool, tuple(arguments)))
    return Plan(tuple(steps))


def sub_plan(plan: Plan, numbers: Iterable[int]) -> tuple[Plan, dict[int, int]]:
    """Return the steps with these numbers as a plan, and a mapping from old to new step numbers.

    The chosen steps must not refer to any other step.
    """
    new_numbers = {number: new for new, number in enumerate(sorted(numbers), 1)}
    steps = (plan.steps[number - 1].renumbered(new_numbers) for number in new_numbers)
    return Plan(tuple(steps)), new_numbers


def format_plan(plan: Plan) -> str:
    """Return the text form of a plan: a line ``sN = tool(parameter=value, ...)`` for each step."""
    return "\n".join(f"s{number} = {step}" for number, step in enumerate(plan.steps, 1))
