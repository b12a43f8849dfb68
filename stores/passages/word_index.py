"""An index that scores texts by BM25 (Robertson and Zaragoza 2009, section 3.5).

It is built with NumPy, in less time than the package bm25s needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from casewright.stores.feedback.sufficiency import word_stems

#: BM25's k1 (how much repetitions of a word add) and b (how much a text's length counts).
K1, B = 1.2, 0.75


class WordIndex:
    """Scores texts by the words of a question; ``texts`` maps ids to texts."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._ids = np.array(list(texts))
        word_lists = [word_stems(text) for text in texts.values()]
        self._index_by_word: dict[str, int] = {}
        words = [word for word_list in word_lists for word in word_list]
        index_of = self._index_by_word.setdefault  # A new word gets the next index.
        word_indices = np.array([index_of(word, len(self._index_by_word)) for word in words])
        count, lengths = len(word_lists), np.array(list(map(len, word_lists)))
        # A posting is a word in a text: the text's row, and the word's weight there. Postings are
        # ordered by word.
        rows = np.repeat(np.arange(count), lengths)
        posting_keys, counts = np.unique(word_indices * count + rows, return_counts=True)
        posting_words, self._rows = np.divmod(posting_keys, max(1, count))
        self._starts = np.searchsorted(posting_words, np.arange(len(self._index_by_word) + 1))
        norms = K1 * (1 - B + B * lengths / max(1.0, lengths.mean()))
        self._weights = counts / (counts + norms[self._rows])

    def rarity(self, word: str) -> float:
        """Return a word's inverse document frequency."""
        postings = self._posting_slice(word)
        frequency = postings.stop - postings.start
        return math.log1p((len(self._ids) - frequency + 0.5) / (frequency + 0.5))

    def shares(self, question: str) -> dict[str, float]:
        """Return texts' BM25 by id, divided by its upper bound for the question; 0 is left out."""
        words = set(word_stems(question))
        scores = np.zeros(len(self._ids))
        for word in words:
            postings = self._posting_slice(word)
            scores[self._rows[postings]] += self.rarity(word) * self._weights[postings]
        rows = np.flatnonzero(scores)
        shares = scores[rows] / sum(map(self.rarity, words)) if words else scores[rows]
        return dict(zip(self._ids[rows].tolist(), shares.tolist(), strict=True))

    def _posting_slice(self, word: str) -> slice:
        index = self._index_by_word.get(word)
        if index is None:
            return slice(0, 0)
        return slice(self._starts[index], self._starts[index + 1])
