"""Algorithm 1 of RAGSys as it is printed, to hold selections against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.stores import CaseSchema, Hit


def algorithm_1(
    similarity: NDArray[np.float64], scores: Sequence[float], ids: Sequence[str], k: int, share: Any
) -> list[int]:
    """Return the rows that are picked, by values of all candidates compared to six decimals.

    Args:
        similarity: Array (n, n).
        scores: Relevance, with the quality bias inside.
        ids: Equal values are told apart by score, then id.
        k: How many to pick.
        share: Lambda_d.
    """
    rows = range(len(ids))
    ties = {row: (-round(scores[row], 6), ids[row]) for row in rows}
    picked: list[int] = []
    worst = np.zeros(len(ids))
    while len(picked) < min(k, len(ids)):
        values = np.round(share * np.asarray(scores) - (1 - share) * worst, 6)
        values[picked] = -np.inf
        best = min(np.flatnonzero(values == values.max()).tolist(), key=lambda row: ties[row])
        worst = np.maximum(worst, similarity[:, best]) if picked else similarity[:, best]
        picked.append(best)
    return picked


def picks_of_all(
    hits: Sequence[Hit], schema: CaseSchema, k: int, share: float, weights: Any = None
) -> list[str]:
    """Return the ids that Algorithm 1 picks among hits, by the similarity that the store uses."""
    if not hits:
        return []
    vectors = np.array([hit.vector for hit in hits], dtype=np.float64)
    similarity = np.zeros((len(hits), len(hits)))
    for facet, weight in zip(schema.facets, schema.weights(weights), strict=True):
        part = vectors[:, schema.slices[facet.name]]
        similarity += weight * (part @ part.T)
    ids = [hit.case.id for hit in hits]
    rows = algorithm_1(similarity, [hit.score for hit in hits], ids, k, share)
    return [ids[row] for row in rows]
