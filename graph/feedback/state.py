"""The state of a feedback loop: JSON-plain, so that every checkpointer keeps it without loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import TypedDict

from casewright.errors import InputError

#: Why a loop stopped: the relevant set did not grow (``settled``); none of the first candidates was
#: relevant; a search found nothing unseen; a bound was met; the judge or a later search failed.
Reason = Literal[
    "settled",
    "nothing_relevant",
    "exhausted",
    "rounds",
    "candidates",
    "tokens",
    "deadline",
    "judge_failed",
    "search_failed",
]


class FeedbackInput(TypedDict, total=False):
    """What a loop is given: ``question``, and ``where``, metadata that a case must have."""

    question: str
    where: dict[str, Any] | None


class FeedbackOutput(TypedDict, total=False):
    """What a loop returns: ``feedback`` is the JSON form of ``FeedbackResult``."""

    feedback: dict[str, Any]


class FeedbackState(FeedbackInput, FeedbackOutput, total=False):
    """Everything that is kept of a loop.

    ``candidates`` has one object for each case that was found: ``id``, ``round``, ``nearness``,
    ``relevant`` (``None`` until it was judged), ``probability``. ``rounds`` is the trace.
    """

    candidates: list[dict[str, Any]]
    rounds: list[dict[str, Any]]
    reason: str


@dataclass(frozen=True, slots=True)
class FeedbackResult:
    """What a feedback loop found.

    Attributes:
        hits: JSON-plain, best first: ``id``, ``text``, ``metadata``, ``score`` (against the
            question), ``round``, ``confirmed``, ``probability`` (``None`` where the judge told
            none). Where nothing was confirmed, what the question itself found, unconfirmed.
        candidates: Every case that was found, in order: ``id``, ``round``, ``nearness``,
            ``relevant`` (``None`` where it was not judged) and ``probability``.
        reason: Why the loop stopped; see ``Reason``.
        rounds: One object a round: ``round``, ``search`` (by what), ``found``, ``judged``,
            ``relevant`` (new ones), ``total`` (all relevant), ``tokens``, ``milliseconds``, and
            ``note``, which says what went wrong.
        judge: Who judged.
        strategy: How later rounds searched.
    """

    hits: Sequence[Mapping[str, Any]]
    candidates: Sequence[Mapping[str, Any]]
    reason: Reason
    rounds: Sequence[Mapping[str, Any]]
    judge: str
    strategy: str

    @property
    def confirmed(self) -> bool:
        """Whether the judge found anything relevant."""
        return any(hit["confirmed"] for hit in self.hits)

    @property
    def judged(self) -> int:
        """How many cases were judged."""
        return sum(one["judged"] for one in self.rounds)

    @property
    def tokens(self) -> int:
        """How many tokens were judged."""
        return sum(one["tokens"] for one in self.rounds)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-plain form, as the state holds it."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> FeedbackResult:
        """Read the result from what the loop returned.

        Raises:
            InputError: It has none: the loop was paused, since its judge asks a person.
        """
        if "feedback" not in state:
            raise InputError(
                "The feedback loop has not ended: its judge waits for an answer. Give the graph a "
                "checkpointer and resume it with that, or take a judge that does not interrupt."
            )
        return cls(**state["feedback"])
