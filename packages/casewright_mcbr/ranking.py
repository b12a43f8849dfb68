"""Ranking figures from the relevance of the nearest cases (MCBR-RAG, Tables 1 and 3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Numbers of nearest cases.
KS = (1, 2, 3, 4, 5)
NAMES = ("precision", "recall", "F1", "NDCG", "MRR")

Floats = NDArray[np.float64]


def ranking_figures(hits: NDArray[np.bool_], relevant: NDArray[np.integer]) -> Floats:
    """Return the figures of ``NAMES`` for each k of ``KS``, array (k, figure, queries).

    Args:
        hits: True for relevant cases among the nearest cases, array (queries, 5), the best first.
        relevant: Number of relevant cases for each query, array (queries).
    """
    gains = 1 / np.log2(np.arange(2, KS[-1] + 2))
    rows = []
    for k in KS:
        some = hits[:, :k]
        precision = some.mean(axis=1)
        recall = some.sum(axis=1) / np.maximum(relevant, 1)
        both = precision + recall
        f1 = np.divide(2 * precision * recall, both, out=np.zeros_like(both), where=both > 0)
        # The paper's ideal ranking has k relevant cases, even if there are fewer.
        ndcg = (some * gains[:k]).sum(axis=1) / gains[:k].sum()
        first = np.where(some.any(axis=1), 1 / (some.argmax(axis=1) + 1), 0)
        rows.append([precision, recall, f1, ndcg, first])
    return np.array(rows)
