"""An index of the words of texts: BM25 (Robertson and Zaragoza 2009, section 3.5).

In NumPy, since it is built at the first search and the package bm25s takes longer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from casewright.stores.feedback.sufficiency import word_stems

#: BM25's parameters: the saturation of a word's count, and the share of the length's effect.
K1, B = 1.2, 0.75


class WordIndex:
    """Scores texts, which are given by id, by the words of a question."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._ids = np.array(list(texts))
        words = [word_stems(text) for text in texts.values()]
        self._slots: dict[str, int] = {}
        slots = [self._slots.setdefault(word, len(self._slots)) for text in words for word in text]
        lengths = np.array([len(text) for text in words])
        # Postings, ordered by word: the row of a text, and the weight of the word in the text.
        rows = np.repeat(np.arange(len(words)), lengths)
        postings, counts = np.unique(np.array(slots) * len(words) + rows, return_counts=True)
        posting_slots, self._rows = np.divmod(postings, max(1, len(words)))
        self._starts = np.searchsorted(posting_slots, np.arange(len(self._slots) + 1))
        norms = K1 * (1 - B + B * lengths / max(1.0, lengths.mean()))
        self._weights = counts / (counts + norms[self._rows])

    def rarity(self, word: str) -> float:
        """Return a word's inverse document frequency."""
        postings = self._postings(word)
        frequency = postings.stop - postings.start
        return math.log1p((len(self._ids) - frequency + 0.5) / (frequency + 0.5))

    def shares(self, question: str) -> dict[str, float]:
        """Return, for each text with words of the question, BM25 as a share of its upper bound."""
        words = set(word_stems(question))
        scores = np.zeros(len(self._ids))
        for word in words:
            postings = self._postings(word)
            scores[self._rows[postings]] += self.rarity(word) * self._weights[postings]
        rows = np.flatnonzero(scores)
        shares = scores[rows] / sum(map(self.rarity, words)) if words else scores[rows]
        return dict(zip(self._ids[rows].tolist(), shares.tolist(), strict=True))

    def _postings(self, word: str) -> slice:
        slot = self._slots.get(word)
        return slice(0, 0) if slot is None else slice(self._starts[slot], self._starts[slot + 1])
