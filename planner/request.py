"""Requests to planners, and their results."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable
from warnings import warn

from typing_extensions import TypedDict

from casewright.errors import InputError, PlanError
from casewright.planner.budget import BudgetCheck, max_calls, unbounded
from casewright.planner.plan import Plan, Step
from casewright.planner.validate import MAX_STEPS, violations
from casewright.tools import Toolbox, whole_number

#: Maximum number of characters of a question.
MAX_QUESTION_CHARACTERS = 8000
#: Maximum number of characters of ``PlanResult.written``.
MAX_WRITTEN_CHARACTERS = 4000


class Turn(TypedDict):
    """Earlier turn of the conversation."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """Request for a plan.

    Raise ``InputError`` if the question is empty, too long or has control characters, the context
    is not a JSON object, or the history is not a list of turns.

    Attributes:
        context: Known facts as a JSON object, for example the open page.
        history: Earlier turns, which inform the plan; a plan cannot refer to them.
        fixed: For replanning, the finished steps with results, which begin the new plan. See
            ``continued``.
        failures: For replanning, the finished calls without results, each with a reason that quotes
            no retrieved text. The calls may refer to steps of ``fixed``.
        excess: Returns a sentence on how a plan exceeds the budget, or "". Only the plan parser and
            the grammar respect the budget. The static checks ignore the budget. Before a run, the
            steps beyond the budget are removed.
    """

    question: str
    toolbox: Toolbox
    context: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Turn] = ()
    max_steps: int = MAX_STEPS
    fixed: Plan = field(default_factory=lambda: Plan(()))
    failures: Mapping[Step, str] = field(default_factory=dict)
    excess: BudgetCheck = unbounded

    def __post_init__(self) -> None:
        check_question(self.question)
        check_context(self.context)
        check_history(self.history)

    @property
    def beyond(self) -> BudgetCheck:
        """Deprecated: use ``excess``."""
        warn("PlanRequest.beyond is now excess", DeprecationWarning, stacklevel=2)
        return self.excess

    def validate(self, plan: Plan) -> None:
        """Raise ``PlanError`` if the plan breaks a static check for this request."""
        for error in self.violations(plan):
            raise error

    def max_calls(self) -> dict[str, int]:
        """Return the maximum number of calls for each tool whose calls the budget limits."""
        if self.excess is unbounded:
            return {}
        limits = {t.name: max_calls(t.name, self.excess, self.max_steps) for t in self.toolbox}
        return {name: calls for name, calls in limits.items() if calls < self.max_steps}

    def violations(self, plan: Plan) -> Iterator[PlanError]:
        """Yield every violation of a static check for this request."""
        return violations(
            plan,
            self.toolbox,
            question=self.question,
            context=self.context,
            max_steps=self.max_steps,
        )


@dataclass(frozen=True, slots=True)
class PlanResult:
    """Valid plan with its planner, confidence and costs.

    Attributes:
        planner: Name of the planner that made the plan.
        attempts: Number of plans that the planner tried, including this one.
        fallback: The reason for a fallback plan; empty if the plan is no fallback plan.
        tokens: A language model's numbers of ``input`` and ``output`` tokens.
        written: A language model's text that is no valid plan, cut to ``MAX_WRITTEN_CHARACTERS``;
            empty if the plan is the model's, or a grammar was used.
        confidence: Probability that the plan is right, 0 to 1; ``None`` if unknown.
        asks_back: True if the confidence is so low that the user should be asked what was meant.
        alternatives: Other valid plans, the most probable first.
        because: The reason for the confidence, as a clause; empty if unknown.
    """

    plan: Plan
    planner: str
    attempts: int = 1
    fallback: str = ""
    milliseconds: float = 0.0
    tokens: Mapping[str, int] = field(default_factory=dict)
    written: str = ""
    confidence: float | None = None
    asks_back: bool = False
    alternatives: tuple[Plan, ...] = ()
    because: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return everything but ``plan`` and ``written``, as JSON."""
        return {
            "name": self.planner,
            "attempts": self.attempts,
            "fallback": self.fallback,
            "milliseconds": round(self.milliseconds, 3),
            "tokens": dict(self.tokens),
            **self.doubt(),
        }

    def doubt(self) -> dict[str, Any]:
        """Return the confidence, its reason, ``asks_back`` and alternatives, as JSON."""
        return {
            "confidence": None if self.confidence is None else round(self.confidence, 4),
            "because": self.because,
            "asks_back": self.asks_back,
            "alternatives": [str(plan) for plan in self.alternatives],
        }


class Planner(Protocol):
    """Writes a whole plan in one call; returns a fallback plan, and no error, if a model fails."""

    @property
    def name(self) -> str:
        """Name of the planner in answers and tables."""

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return a plan that is valid for the request."""

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``, without blocking the event loop."""


@runtime_checkable
class BatchPlanner(Planner, Protocol):
    """Planner that is faster for several questions at once."""

    @property
    def batch(self) -> int:
        """Maximum number of requests that are planned at the same time."""

    def plan_many(self, requests: Sequence[PlanRequest]) -> list[PlanResult]:
        """Return a valid plan for each request, in order."""


def milliseconds_since(started: float) -> float:
    """Return the milliseconds since ``started``, a value of ``time.perf_counter``."""
    return (time.perf_counter() - started) * 1000


def check_question(question: Any) -> None:
    """Raise ``InputError`` if a value is not a valid question."""
    if not isinstance(question, str):
        raise InputError(f"The question is {type(question).__name__}, not text. Give a text.")
    if not question.strip():
        raise InputError("The question is empty. Ask something.")
    if len(question) > MAX_QUESTION_CHARACTERS:
        raise InputError(
            f"The question has {len(question):,} characters; at most {MAX_QUESTION_CHARACTERS:,} "
            "are read. Shorten it."
        )
    if any(ord(character) < 32 and character not in "\t\n\r" for character in question):
        raise InputError(
            "The question holds control characters (NUL or the like). Remove them and ask again."
        )
    try:
        question.encode()
    except UnicodeEncodeError as error:
        raise InputError("The question is not valid Unicode text. Encode it as UTF-8.") from error


def check_context(context: Any) -> None:
    """Raise ``InputError`` if a context is not a JSON object."""
    if not isinstance(context, Mapping) or not all(isinstance(key, str) for key in context):
        raise InputError(
            f"The context is {type(context).__name__}, not a JSON object. "
            'Give one such as {"product_id": "P001"}.'
        )
    _check_json(dict(context), "context", "a JSON object")


def _check_json(value: Any, name: str, expected: str) -> None:
    try:
        check_storable(value)
    except UnicodeEncodeError as error:
        raise InputError(f"The {name} holds text that is not valid Unicode.") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"The {name} is not {expected}: {error}.") from error


def check_storable(value: Any) -> None:
    """Raise an error if a checkpointer could not store a value.

    Raise ``UnicodeEncodeError`` for a lone surrogate in a text. Raise ``TypeError``, ``ValueError``
    or ``RecursionError`` if the value is not plain JSON, has a number that is not finite, or has an
    integer of more than 64 bits.
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    json.loads(text.encode(), parse_int=whole_number)


def check_history(history: Any) -> None:
    """Raise ``InputError`` if a history is not a list of earlier turns."""
    # In place of a history that is no list, the loop gets an invalid turn, and raises the error.
    turns = history if isinstance(history, (list, tuple)) else [None]
    for turn in turns:
        texts = [turn.get(key) for key in Turn.__annotations__] if isinstance(turn, Mapping) else []
        if not texts or not all(isinstance(text, str) for text in texts):
            raise InputError(
                "The history is not a list of turns. Give "
                '[{"question": "…", "answer": "…"}, …], the earliest first.'
            )
    _check_json(list(turns), "history", "JSON")
