"""Which questions are there already, and which are too like one of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from casewright.finetune.queries.similarity import best_similarity
from casewright.finetune.queries.written_queries import Dropped, UnusableError
from casewright.planner.spans import normalized
from casewright.stores import Encoder


class SeenQuestions:
    """Questions that are there, and whether another is too like one of them.

    Args:
        threshold: A cosine above this is too like.
    """

    def __init__(self, encoder: Encoder, threshold: float) -> None:
        self._encoder = encoder
        self._threshold = threshold
        self._texts: set[str] = set()
        self._vectors = np.zeros((0, encoder.dimension), dtype=np.float32)

    def add(self, texts: Sequence[str]) -> None:
        """Add questions as they are."""
        if texts:
            self._texts |= {normalized(text) for text in texts}
            self._vectors = np.concatenate([self._vectors, self._encoder.embed(texts)])

    def take(self, text: str) -> None:
        """Add a question.

        Raises:
            UnusableError: It is there, or one that is too like it.
        """
        if normalized(text) in self._texts:
            raise UnusableError(Dropped.KNOWN)
        vector = self._encoder.embed([text])
        if len(self._vectors) and best_similarity(vector, self._vectors)[0] > self._threshold:
            raise UnusableError(Dropped.ALIKE)
        self._texts.add(normalized(text))
        self._vectors = np.concatenate([self._vectors, vector])
