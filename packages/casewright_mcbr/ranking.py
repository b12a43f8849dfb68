"""Measures of a ranking of cases by similarity (MCBR-RAG, Tables 1 and 3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: The numbers of nearest cases for which figures are computed.
KS = (1, 2, 3, 4, 5)
FIGURE_NAMES = ("precision", "recall", "F1", "NDCG", "MRR")

FigureArray = NDArray[np.float64]


def ranking_figures(
    is_relevant: NDArray[np.bool_], relevant_counts: NDArray[np.integer]
) -> FigureArray:
    """Return the figures of ``FIGURE_NAMES`` for each k of ``KS``, as (k, figure, queries).

    Args:
        is_relevant: Array (queries, 5): True if the query's nth nearest case is relevant.
        relevant_counts: The number of relevant cases of each query, as (queries).
    """
    discounts = 1 / np.log2(np.arange(2, KS[-1] + 2))
    rows = []
    for k in KS:
        top = is_relevant[:, :k]
        precision = top.mean(axis=1)
        recall = top.sum(axis=1) / np.maximum(relevant_counts, 1)
        total = precision + recall
        f1 = np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0)
        # The paper's ideal ranking has k relevant cases, even if there are fewer.
        ndcg = (top * discounts[:k]).sum(axis=1) / discounts[:k].sum()
        reciprocal_rank = np.where(top.any(axis=1), 1 / (top.argmax(axis=1) + 1), 0)
        rows.append([precision, recall, f1, ndcg, reciprocal_rank])
    return np.array(rows)
