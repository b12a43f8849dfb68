"""Rocchio's formula on the stored vectors: nothing is encoded anew."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from casewright.errors import InputError
from casewright.stores.feedback.strategy import Feedback
from casewright.stores.question import Found, Question


@dataclass(frozen=True, slots=True)
class RocchioStrategy:
    """Moves the question towards the relevant cases, and away from the irrelevant ones.

    The query is α·q + β·mean(relevant) − γ·mean(irrelevant), in every facet, weighted as the
    question is.

    Source: Rocchio, "Relevance feedback in information retrieval" (1971); the defaults are those
    of Manning, Raghavan and Schütze, "Introduction to Information Retrieval", section 9.1.1.

    Attributes:
        alpha: Of the question, at least 0.
        beta: Of the relevant cases, above 0.
        gamma: Of the irrelevant ones, at least 0.

    Raises:
        InputError: A factor is no number, or out of its range.
    """

    alpha: float = 1.0
    beta: float = 0.75
    gamma: float = 0.15
    name: str = "rocchio"

    def __post_init__(self) -> None:
        given: tuple[Any, ...] = (self.alpha, self.beta, self.gamma)
        numbers = all(isinstance(one, Real) and not isinstance(one, bool) for one in given)
        if not numbers or not all(map(np.isfinite, given)) or min(given) < 0 or self.beta == 0:
            raise InputError(
                f"Rocchio's factors are alpha={self.alpha!r}, beta={self.beta!r}, "
                f"gamma={self.gamma!r}. Give finite numbers of at least 0, and a beta above 0."
            )

    def search(self, question: Question, feedback: Feedback, k: int) -> list[Found]:
        """Search once; see ``Strategy``."""
        query = self.alpha * question.units
        query = query + self.beta * np.mean([one.hit.vector for one in feedback.relevant], axis=0)
        if self.gamma and feedback.irrelevant:
            away = np.mean([one.hit.vector for one in feedback.irrelevant], axis=0)
            query = query - self.gamma * away
        return question.nearest(query[np.newaxis].astype(np.float32), k, exclude=feedback.seen)
