"""Requests to planners, and their results."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from typing_extensions import TypedDict

from casewright.errors import InputError, PlanError
from casewright.planner.budget import Beyond, most_calls, unbounded
from casewright.planner.plan import Plan, Step
from casewright.planner.validate import MAX_STEPS, violations
from casewright.tools import Toolbox, whole_number

#: Most characters of a question.
MAX_QUESTION_CHARACTERS = 8000
#: Most characters that a result keeps of a language model's text that was no plan.
MAX_WRITTEN_CHARACTERS = 4000


class Turn(TypedDict):
    """An earlier turn of the conversation."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A question to plan for.

    Attributes:
        context: A JSON object of known facts, for example the page that is open.
        history: Earlier turns; they inform the plan, and no plan can refer to them.
        fixed: Steps that have run with results; a planner that replans begins its plan with them,
            or is continued by ``continued``.
        failures: Calls that have run without results, numbered as in ``fixed``, each with the
            reason in words of our own: retrieved text never reaches a planner.
        beyond: The budget, which no static check holds: the parser's search and the grammar keep
            within it, and what another planner writes beyond it is left out before it runs.

    Raises:
        InputError: The question is empty, too long or holds control characters, the context is not
            a JSON object, or the history is not a list of turns.
    """

    question: str
    toolbox: Toolbox
    context: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Turn] = ()
    max_steps: int = MAX_STEPS
    fixed: Plan = field(default_factory=lambda: Plan(()))
    failures: Mapping[Step, str] = field(default_factory=dict)
    beyond: Beyond = unbounded

    def __post_init__(self) -> None:
        check_question(self.question)
        check_context(self.context)
        check_history(self.history)

    def validate(self, plan: Plan) -> None:
        """Raise ``PlanError`` if the plan breaks a static check for this request."""
        for error in self.violations(plan):
            raise error

    def most_calls(self) -> dict[str, int]:
        """Return the most calls of each tool of which the budget admits fewer than steps."""
        if self.beyond is unbounded:
            return {}
        most = {t.name: most_calls(t.name, self.beyond, self.max_steps) for t in self.toolbox}
        return {name: calls for name, calls in most.items() if calls < self.max_steps}

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
    """A valid plan, and how it was made.

    Attributes:
        attempts: Number of plans that were tried, this one included.
        fallback: The reason for a fallback plan; empty if the plan is no fallback plan.
        tokens: Token counts of a language model: ``input`` and ``output``.
        written: The text of a language model that was no valid plan, at most
            ``MAX_WRITTEN_CHARACTERS`` of it. Empty where it wrote nothing, or under a grammar.
        confidence: Probability that the plan is right, 0 to 1; ``None`` if unknown.
        asks_back: The planner is so unsure that it should ask the user back.
        alternatives: Other valid plans, the likeliest first.
        because: Why the planner is so sure, as a clause; empty if it does not say.
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
        """Return how the plan was made, JSON-plain, without the plan."""
        return {
            "name": self.planner,
            "attempts": self.attempts,
            "fallback": self.fallback,
            "milliseconds": round(self.milliseconds, 3),
            "tokens": dict(self.tokens),
            **self.doubt(),
        }

    def doubt(self) -> dict[str, Any]:
        """Return confidence, its reason, ``asks_back`` and alternatives, JSON-plain."""
        return {
            "confidence": None if self.confidence is None else round(self.confidence, 4),
            "because": self.because,
            "asks_back": self.asks_back,
            "alternatives": [str(plan) for plan in self.alternatives],
        }


class Planner(Protocol):
    """Writes a whole plan in one call, and never raises an error for its model."""

    @property
    def name(self) -> str:
        """Name of the planner in answers and tables."""

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return a plan that is valid for the request."""

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the same as ``plan``, without blocking the event loop."""


@runtime_checkable
class BatchPlanner(Planner, Protocol):
    """A planner that is quicker with several questions at once."""

    @property
    def batch(self) -> int:
        """Number of requests that are planned for together."""

    def plan_many(self, requests: Sequence[PlanRequest]) -> list[PlanResult]:
        """Return a valid plan for each request, in order."""


def milliseconds_since(started: float) -> float:
    """Return the milliseconds since a value of ``time.perf_counter``."""
    return (time.perf_counter() - started) * 1000


def check_question(question: Any) -> None:
    """Raise ``InputError`` if this is not a question that can be answered."""
    if not isinstance(question, str):
        raise InputError(f"The question is {type(question).__name__}, not text. Give a text.")
    if not question.strip():
        raise InputError("The question is empty. Ask something.")
    if len(question) > MAX_QUESTION_CHARACTERS:
        raise InputError(
            f"The question has {len(question):,} characters; at most {MAX_QUESTION_CHARACTERS:,} "
            "are read. Shorten it."
        )
    if any(ord(char) < 32 and char not in "\t\n\r" for char in question):
        raise InputError(
            "The question holds control characters (NUL or the like). Remove them and ask again."
        )
    try:
        question.encode()
    except UnicodeEncodeError as error:
        raise InputError("The question is not valid Unicode text. Encode it as UTF-8.") from error


def check_context(context: Any) -> None:
    """Raise ``InputError`` if this is not a JSON object."""
    if not isinstance(context, Mapping) or not all(isinstance(key, str) for key in context):
        raise InputError(
            f"The context is {type(context).__name__}, not a JSON object. "
            'Give one such as {"product_id": "P001"}.'
        )
    _check_json(dict(context), "context", "a JSON object")


def _check_json(value: Any, name: str, kind: str) -> None:
    try:
        check_kept(value)
    except UnicodeEncodeError as error:
        raise InputError(f"The {name} holds text that is not valid Unicode.") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"The {name} is not {kind}: {error}.") from error


def check_kept(value: Any) -> None:
    """Raise an error unless every checkpointer can keep a value.

    Raises:
        UnicodeEncodeError: A text holds half of a surrogate pair.
        TypeError, ValueError, RecursionError: The value is not JSON-plain, or holds a number that
            is not finite or a whole one of more than 64 bits.
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    json.loads(text.encode(), parse_int=whole_number)


def check_history(history: Any) -> None:
    """Raise ``InputError`` if this is not a list of earlier turns."""
    turns = history if isinstance(history, (list, tuple)) else [None]
    for turn in turns:
        texts = [turn.get(key) for key in Turn.__annotations__] if isinstance(turn, Mapping) else []
        if not texts or not all(isinstance(text, str) for text in texts):
            raise InputError(
                "The history is no list of turns. Give "
                '[{"question": "…", "answer": "…"}, …], the earliest first.'
            )
    _check_json(list(turns), "history", "JSON")
