"""Limits, state and result of a feedback loop; every checkpointer can save the state (JSON)."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import TypedDict

from casewright.errors import InputError


@dataclass(frozen=True, slots=True)
class FeedbackLimits:
    """Bounds of a feedback loop.

    Attributes:
        first: Maximum number of cases of the first search, which uses the question alone.
        more: Maximum number of new cases of each later search.
        rounds: Maximum number of searches; the judge is called once after each search.
        candidates: Maximum number of cases of all searches together; each case is judged.
        tokens: Maximum tokens of all requests to the judge. For a judge that does not count tokens,
            one token per four characters is assumed.
        seconds: Maximum time of the loop; the wait for a person's reply does not count.
        characters: Maximum length of a case's text in a request to the judge; longer texts are cut.

    Raise ``InputError`` if a bound is not positive.
    """

    first: int = 10
    more: int = 5
    rounds: int = 5
    candidates: int = 40
    tokens: int = 30_000
    seconds: float = 15.0
    characters: int = 4_000

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            number_type = float if name == "seconds" else int
            if isinstance(value, bool) or not isinstance(value, (int, number_type)):
                expected = "number" if number_type is float else "whole number"
                raise InputError(f"FeedbackLimits.{name} is {value!r}. Give a {expected} above 0.")
            # ``TIMEOUT_MAX`` matters for ``seconds``; no useful value of another bound is above it.
            if not 0 < value <= threading.TIMEOUT_MAX:
                raise InputError(
                    f"FeedbackLimits.{name} is {value}. Give a number above 0, and at most "
                    f"{threading.TIMEOUT_MAX:.0f}."
                )


def estimated_tokens(*texts: str) -> int:
    """Return an estimate of the number of tokens of texts: one token per four characters."""
    return sum(math.ceil(len(text) / 4) for text in texts)


#: The reason why a loop ended.
Reason = Literal[
    "settled",  # the judge found no further relevant case
    "nothing_relevant",  # no candidate of the first search was relevant
    "exhausted",  # a search found no unseen case
    "rounds",  # the maximum number of searches was made
    "candidates",  # the maximum number of cases was found
    "tokens",  # the judge may use no further tokens
    "deadline",  # the maximum time has passed
    "judge_failed",
    "search_failed",  # a search after the first one failed
]


class FeedbackInput(TypedDict, total=False):
    """Input of a loop; ``where`` is a condition on the metadata of the cases to find."""

    question: str
    where: dict[str, Any] | None


class FeedbackOutput(TypedDict, total=False):
    """Output of a loop: ``feedback`` is the JSON form of ``FeedbackResult``."""

    feedback: dict[str, Any]


class FeedbackState(FeedbackInput, FeedbackOutput, total=False):
    """State of a loop; see ``FeedbackResult``. ``reason`` is empty until the loop ends."""

    candidates: list[dict[str, Any]]
    rounds: list[dict[str, Any]]
    reason: str


@dataclass(frozen=True, slots=True)
class FeedbackResult:
    """Result of a feedback loop.

    Attributes:
        hits: JSON objects, best first: ``id``, ``text``, ``metadata``, ``score`` (for the
            question), ``round``, ``confirmed`` (true if the judge called the case relevant) and
            ``probability`` (``None`` if the judge gave none). If no case is confirmed, ``hits``
            are the cases of the first search.
        candidates: All found cases, in order of the searches: ``id``, ``round``, ``nearness`` (the
            score in that round), ``relevant`` (``None`` until judged) and ``probability``.
        reason: The reason why the loop ended; see ``Reason``.
        rounds: One object per round: ``round``, ``search`` (the question or a strategy's name),
            the round's counts of cases ``found``, ``judged`` and ``relevant``, ``total`` (relevant
            cases of all rounds so far), ``tokens``, ``milliseconds``, and ``note`` (on a problem).
        judge: Name of the judge.
        strategy: Name of the strategy that searched in later rounds.
    """

    hits: Sequence[Mapping[str, Any]]
    candidates: Sequence[Mapping[str, Any]]
    reason: Reason
    rounds: Sequence[Mapping[str, Any]]
    judge: str
    strategy: str

    @property
    def confirmed(self) -> bool:
        """True if the judge found a relevant case."""
        return any(hit["confirmed"] for hit in self.hits)

    @property
    def judged(self) -> int:
        """Number of judged cases."""
        return sum(record["judged"] for record in self.rounds)

    @property
    def tokens(self) -> int:
        """Number of tokens of the judge's requests."""
        return sum(record["tokens"] for record in self.rounds)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, which the state holds."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> FeedbackResult:
        """Read the result from the output of the loop.

        Raise ``InputError`` if the loop is paused because its judge asks a person.
        """
        if "feedback" not in state:
            raise InputError(
                "The feedback loop has not ended: its judge waits for a reply. Give the graph a "
                "checkpointer and resume it with the reply, or use a judge that does not interrupt."
            )
        return cls(**state["feedback"])
