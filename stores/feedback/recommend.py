"""Qdrant's recommend query: what is like any of the relevant, and unlike the irrelevant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from casewright.stores.feedback.strategy import Feedback
from casewright.stores.question import Found, Question

if TYPE_CHECKING:
    from casewright.stores.engines.engine import RecommendStrategy as Kind


@dataclass(frozen=True, slots=True)
class RecommendStrategy:
    """Asks the engine's recommend query for the stored vectors; nothing is encoded anew.

    The question is a positive example like the relevant cases.

    Attributes:
        kind: ``"best_score"`` or ``"sum_scores"``; see ``Engine.recommend``.
        negatives: Give it the irrelevant cases as negative examples.
    """

    kind: Kind = "best_score"
    negatives: bool = False
    name: str = "recommend"

    def search(self, question: Question, feedback: Feedback, k: int) -> list[Found]:
        """Search once; see ``Strategy``."""
        positive = np.array([question.units, *(one.hit.vector for one in feedback.relevant)])
        negative = np.empty((0, positive.shape[1]), dtype=np.float32)
        if self.negatives and feedback.irrelevant:
            negative = np.array([one.hit.vector for one in feedback.irrelevant])
        return question.recommended(
            positive, negative, k, exclude=feedback.seen, strategy=self.kind
        )
