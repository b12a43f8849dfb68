"""Requests to planners, and their results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict, runtime_checkable

from casewright.errors import InputError
from casewright.planner.plan import Plan
from casewright.planner.validate import MAX_STEPS, validate_plan
from casewright.tools import Toolbox, whole_number

#: A question is something a person typed.
MAX_QUESTION_CHARACTERS = 8000
#: What is kept of a text that a language model wrote in a plan's place.
MAX_WRITTEN_CHARACTERS = 4000


class Turn(TypedDict):
    """An earlier turn of the conversation."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """Question to plan for.

    Attributes:
        question: What the user asks.
        context: What is known beside it, for example the page that is open; a JSON object.
        history: Earlier turns; they inform the plan, and no plan can refer to them.
        toolbox: The tools of this request.
        max_steps: The budget.

    Raises:
        InputError: The question is empty, too long or holds control characters, the context is no
            JSON object, or the history no list of turns.
    """

    question: str
    toolbox: Toolbox
    context: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Turn] = ()
    max_steps: int = MAX_STEPS

    def __post_init__(self) -> None:
        check_question(self.question)
        check_context(self.context)
        check_history(self.history)

    def validate(self, plan: Plan) -> None:
        """Raise ``PlanError`` where the plan breaks a static check for this request."""
        validate_plan(
            plan,
            self.toolbox,
            question=self.question,
            context=self.context,
            max_steps=self.max_steps,
        )


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A valid plan, and how it came about.

    Attributes:
        plan: Valid for the request.
        planner: Which planner answered.
        attempts: Plans that were tried, this one included.
        fallback: Why this is a fallback plan; empty where it is none.
        milliseconds: Time taken.
        tokens: Token counts where a language model wrote it: ``input`` and ``output``.
        written: Where what a language model wrote was no valid plan: that, word for word, at most
            ``MAX_WRITTEN_CHARACTERS`` of it. Empty where it wrote nothing, or where a grammar
            let it write nothing else.
        confidence: Probability that the plan is right, 0 to 1; ``None`` where the planner has none.
        asks_back: The planner is so unsure that whoever asked should be asked what was meant.
        alternatives: Other valid plans, the likeliest first.
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

    def doubt(self) -> dict[str, Any]:
        """Return what is told of how sure the planner is, JSON-plain."""
        return {
            "confidence": None if self.confidence is None else round(self.confidence, 4),
            "asks_back": self.asks_back,
            "alternatives": [str(plan) for plan in self.alternatives],
        }


class Planner(Protocol):
    """Writes a whole plan in one call, and never raises for what a model wrote."""

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
        """Number of requests that it plans for together."""

    def plan_many(self, requests: Sequence[PlanRequest]) -> list[PlanResult]:
        """Return a valid plan for each request, in order."""


def check_question(question: Any) -> None:
    """Raise ``InputError`` where this is no question that can be answered."""
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
    """Raise ``InputError`` where this is no context: a JSON object."""
    if not isinstance(context, Mapping) or not all(isinstance(key, str) for key in context):
        raise InputError(
            f"The context is {type(context).__name__}, not a JSON object. "
            'Give one such as {"product_id": "P001"}.'
        )
    try:
        check_kept(dict(context))
    except UnicodeEncodeError as error:
        raise InputError("The context holds text that is not valid Unicode.") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"The context is no JSON object: {error}.") from error


def check_kept(value: Any) -> None:
    """Raise an error unless every checkpointer can keep a value.

    Raises:
        UnicodeEncodeError: It holds half of a surrogate pair.
        TypeError, ValueError, RecursionError: It is not JSON-plain, or holds a number that is not
            finite or a whole one of more than 64 bits.
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    json.loads(text.encode(), parse_int=whole_number)


def check_history(history: Any) -> None:
    """Raise ``InputError`` where this is no list of earlier turns."""
    turns = history if isinstance(history, (list, tuple)) else [None]
    for turn in turns:
        texts = (
            [turn.get(name) for name in ("question", "answer")] if isinstance(turn, Mapping) else []
        )
        if len(texts) != 2 or not all(isinstance(text, str) for text in texts):
            raise InputError(
                "The history is no list of turns. Give "
                '[{"question": "…", "answer": "…"}, …], the earliest first.'
            )
    try:
        check_kept(list(turns))
    except UnicodeEncodeError as error:
        raise InputError("The history holds text that is not valid Unicode.") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"The history is not JSON: {error}.") from error
