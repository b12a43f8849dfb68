"""Outcomes of steps, and the resolution of a plan's references to the results of steps.

References are resolved in the parsed plan, never by a substitution in the plan's text.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from casewright.planner import ContextRef, ListValue, Literal, QuestionRef, Step, StepRef
from casewright.planner.plan import Value

Status = typing.Literal["done", "empty", "failed", "timed_out", "skipped"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a step.

    Attributes:
        step: Name of the step, such as ``"s2"``.
        status: ``done``; ``empty`` (no results); ``failed`` (the tool raised an error, or returned
            undeclared fields); ``timed_out``; ``skipped`` (a referenced result is missing).
        rows: The results; empty unless ``done``.
        error: The reason for a status other than ``done``; plans cannot refer to it.
        attempts: Number of calls of the tool.
        started: Milliseconds from the start of the plan's execution to the first call.
        milliseconds: Milliseconds from the first call to the end of the last call.
        reports: The tool's reports in the last attempt, such as rounds of relevance feedback.
    """

    step: str
    tool: str
    status: Status
    arguments: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[Mapping[str, Any]] = ()
    error: str = ""
    attempts: int = 0
    started: float = 0.0
    milliseconds: float = 0.0
    reports: Sequence[Mapping[str, Any]] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__slots__} | {
            "arguments": dict(self.arguments),
            "rows": [dict(row) for row in self.rows],
            "reports": [dict(report) for report in self.reports],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Outcome:
        """Rebuild an outcome from its JSON form."""
        return cls(**data)


class MissingReferenceError(Exception):
    """Raised for a step that refers to a missing result; the step is then skipped."""


@dataclass(frozen=True, slots=True)
class StepInputs:
    """Values for the references of a step: question, context, and outcomes by step number."""

    question: str
    context: Mapping[str, Any]
    outcomes: Mapping[int, Outcome]

    def arguments(self, step: Step) -> dict[str, Any]:
        """Return the values of a step's arguments.

        Raise ``MissingReferenceError``, with the reason, if a referenced value is missing.
        """
        return {name: self._value(value) for name, value in step.arguments}

    def _value(self, value: Value) -> Any:
        match value:
            case Literal():
                return value.value
            case QuestionRef():
                return self.question
            case ContextRef(field):
                return self.context[field]
            case StepRef():
                return self._result_value(value)
            case ListValue(items):
                return [self._value(item) for item in items]

    def _result_value(self, reference: StepRef) -> Any:
        outcome = self.outcomes[reference.step]
        if outcome.status != "done":
            raise MissingReferenceError(
                f"It needs {outcome.step} ({outcome.tool}), which ended {outcome.status}."
            )
        if reference.index >= len(outcome.rows):
            raise MissingReferenceError(
                f"It needs result {reference.index} of {outcome.step} ({outcome.tool}), which "
                f"returned {len(outcome.rows)}."
            )
        value = outcome.rows[reference.index].get(reference.field)
        if value is None:
            raise MissingReferenceError(f"It needs {reference}, which {outcome.tool} left empty.")
        return value
