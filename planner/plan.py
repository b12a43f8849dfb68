"""The plan: what the prompt shows, the parser yields, the executor runs, the evaluation scores."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

from casewright.errors import PlanError


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A text, number or boolean that the plan itself gives.

    Two literals are equal when value and type are: ``1``, ``1.0`` and ``true`` differ.

    Raises:
        PlanError: The number is not finite or has more than 64 bits, or the text is not Unicode
            (it holds a lone surrogate).
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
    """The user's question, verbatim."""

    def __str__(self) -> str:
        return "question"


@dataclass(frozen=True, slots=True)
class ContextRef:
    """A field of the request's context."""

    field: str

    def __str__(self) -> str:
        return f"context.{self.field}"


@dataclass(frozen=True, slots=True)
class StepRef:
    """A field of one result of an earlier step; steps count from 1, results from 0."""

    step: int
    field: str
    index: int = 0

    def __str__(self) -> str:
        index = f"[{self.index}]" if self.index else ""
        return f"s{self.step}{index}.{self.field}"


Scalar = Literal | QuestionRef | ContextRef | StepRef


@dataclass(frozen=True, slots=True)
class ListValue:
    """A flat list of values."""

    items: tuple[Scalar, ...]

    def __str__(self) -> str:
        return "[" + ", ".join(map(str, self.items)) + "]"


Value = Scalar | ListValue


@dataclass(frozen=True, slots=True)
class Step:
    """Call of a tool: its arguments by name, in the order in which they are written."""

    tool: str
    arguments: tuple[tuple[str, Value], ...] = ()

    def argument(self, name: str) -> Value | None:
        """Return the argument of this name, if there is one."""
        return next((value for own, value in self.arguments if own == name), None)

    def references(self) -> Iterator[StepRef]:
        """Yield every reference to another step, those inside lists too."""
        for _, value in self.arguments:
            for item in value.items if isinstance(value, ListValue) else (value,):
                if isinstance(item, StepRef):
                    yield item

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.arguments)
        return f"{self.tool}({shown})"


@dataclass(frozen=True, slots=True)
class Plan:
    """The whole look-up plan; step N is ``steps[N - 1]``. Its text form is ``str(plan)``."""

    steps: tuple[Step, ...]

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools in the order of the steps."""
        return tuple(step.tool for step in self.steps)

    def __str__(self) -> str:
        return format_plan(self)


def context_fields(plan: Plan) -> list[str]:
    """Return the fields of the context that a plan needs."""
    values = [value for step in plan.steps for _, value in step.arguments]
    return sorted({value.field for value in values if isinstance(value, ContextRef)})


def format_plan(plan: Plan) -> str:
    """Return the text form: one line ``sN = tool(parameter=value, ...)`` a step."""
    return "\n".join(f"s{number} = {step}" for number, step in enumerate(plan.steps, 1))
