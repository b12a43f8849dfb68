"""Qdrant's recommend query: what is like any of the relevant, and unlike the irrelevant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from casewright.errors import InputError
from casewright.stores.engines.engine import RecommendStrategy as Kind
from casewright.stores.feedback.strategy import Feedback
from casewright.stores.question import Found, Question


@dataclass(frozen=True, slots=True)
class RecommendStrategy:
    """Asks the engine's recommend query for the stored vectors; nothing is encoded anew.

    The question is a positive example like the relevant cases.

    Attributes:
        kind: ``"best_score"`` or ``"sum_scores"``; see ``Engine.recommend``.
        negatives: Give it the irrelevant cases as negative examples.

    Raises:
        InputError: There is no such kind.
    """

    kind: Kind = "best_score"
    negatives: bool = False
    name: str = "recommend"

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            kinds = " or ".join(map(repr, get_args(Kind)))
            raise InputError(f"RecommendStrategy has kind={self.kind!r}. Give {kinds}.")

    def search(self, question: Question, feedback: Feedback, k: int) -> list[Found]:
        """Search once; see ``Strategy``."""
        positive = np.array([question.units, *(one.hit.vector for one in feedback.relevant)])
        negative = np.empty((0, positive.shape[1]), dtype=np.float32)
        if self.negatives and feedback.irrelevant:
            negative = np.array([one.hit.vector for one in feedback.irrelevant])
        return question.recommended(
            positive, negative, k, exclude=feedback.seen, strategy=self.kind
        )
