"""What a strategy is: how to search again with what was found relevant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from casewright.stores.feedback.candidate import Candidate
from casewright.stores.question import Found, Question


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a judge said so far.

    Attributes:
        relevant: Candidates that are relevant, in the order in which they were found; at least one.
        irrelevant: Those that are not.
    """

    relevant: Sequence[Candidate]
    irrelevant: Sequence[Candidate] = ()

    @property
    def seen(self) -> set[str]:
        """Ids of all that was judged."""
        return {one.id for one in (*self.relevant, *self.irrelevant)}


class Strategy(Protocol):
    """Searches again."""

    @property
    def name(self) -> str:
        """How the strategy is named in results."""

    def search(self, question: Question, feedback: Feedback, k: int) -> list[Found]:
        """Return at most k cases that were not seen, the most promising first."""
