"""Figures of rankings by which of the nearest cases are relevant (MCBR-RAG, Tables 1 and 3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Nearest cases that are looked at; each figure is the mean over them.
KS = (1, 2, 3, 4, 5)
NAMES = ("precision", "recall", "F1", "NDCG", "MRR")

Floats = NDArray[np.float64]


def ranking_figures(hits: NDArray[np.bool_], there: NDArray[np.integer]) -> Floats:
    """Return the figures of ``NAMES`` for each k of ``KS``, array (k, figure, queries).

    Args:
        hits: Whether each of the nearest cases is relevant, array (queries, 5), the best first.
        there: How many cases are relevant at all, array (queries).
    """
    gains = 1 / np.log2(np.arange(2, KS[-1] + 2))
    rows = []
    for k in KS:
        some = hits[:, :k]
        precision = some.mean(axis=1)
        recall = some.sum(axis=1) / np.maximum(there, 1)
        both = precision + recall
        f1 = np.divide(2 * precision * recall, both, out=np.zeros_like(both), where=both > 0)
        # The paper's ideal has k relevant ones, however many there are.
        ndcg = (some * gains[:k]).sum(axis=1) / gains[:k].sum()
        first = np.where(some.any(axis=1), 1 / (some.argmax(axis=1) + 1), 0)
        rows.append([precision, recall, f1, ndcg, first])
    return np.array(rows)
