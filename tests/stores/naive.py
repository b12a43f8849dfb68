"""Algorithm 1 of RAGSys as the paper prints it, to compare selections with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.stores import CaseSchema, Hit


def algorithm_1(
    similarity: NDArray[np.float64], scores: Sequence[float], ids: Sequence[str], k: int, share: Any
) -> list[int]:
    """Return the picked rows, after rounding the values of all candidates to six decimals.

    Args:
        similarity: Array (n, n).
        scores: Relevance, including the quality bias.
        ids: Ids of the cases; ties are broken by score, then by id.
        k: The number of rows to pick.
        share: Lambda_d.
    """
    rows = range(len(ids))
    ties = {row: (-round(scores[row], 6), ids[row]) for row in rows}
    picked: list[int] = []
    redundancy = np.zeros(len(ids))
    while len(picked) < min(k, len(ids)):
        values = np.round(share * np.asarray(scores) - (1 - share) * redundancy, 6)
        values[picked] = -np.inf
        best = min(np.flatnonzero(values == values.max()).tolist(), key=lambda row: ties[row])
        redundancy = np.maximum(redundancy, similarity[:, best]) if picked else similarity[:, best]
        picked.append(best)
    return picked


def picks_of_all(
    hits: Sequence[Hit], schema: CaseSchema, k: int, share: float, weights: Any = None
) -> list[str]:
    """Return the ids of the hits that Algorithm 1 picks, with the similarity of the store."""
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
