"""References become values: once, by position in the parsed plan, never by substitution in text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from casewright.graph.outcome import Outcome
from casewright.planner import ContextRef, ListValue, Literal, QuestionRef, Step, StepRef
from casewright.planner.plan import Value


class MissingReferenceError(Exception):
    """What a step refers to is not there; the step is skipped for this reason."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the references of a step may stand for.

    Attributes:
        question: The user's question.
        context: The request's context.
        outcomes: The finished steps, by number.
    """

    question: str
    context: Mapping[str, Any]
    outcomes: Mapping[int, Outcome]

    def arguments(self, step: Step) -> dict[str, Any]:
        """Return the values of a step's arguments.

        Raises:
            MissingReferenceError: A reference stands for nothing; says which and why.
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
                return self._field(value)
            case ListValue(items):
                return [self._value(item) for item in items]

    def _field(self, reference: StepRef) -> Any:
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
        found = outcome.rows[reference.index].get(reference.field)
        if found is None:
            raise MissingReferenceError(f"It needs {reference}, which {outcome.tool} left empty.")
        return found
