"""How near the answers of a store come to the exact ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from casewright.bench.stores.data import CHUNK, WEIGHTS, Vectors

#: Scores that differ by less are equal: stores compute with 32 bits.
TIE = 1e-6


def exact_scores(cases: Vectors, queries: Vectors) -> NDArray[np.float64]:
    """Return the weighted sums of cosines in 64 bits, array (queries, cases).

    Args:
        cases: Unit vectors, array (facets, cases, dimension).
        queries: Unit vectors, array (facets, queries, dimension); query i has weight set i modulo
            their number.
    """
    weights = np.array([WEIGHTS[i % len(WEIGHTS)] for i in range(queries.shape[1])])
    out = np.zeros((queries.shape[1], cases.shape[1]))
    for facet in range(len(cases)):
        asked = queries[facet].astype(np.float64) * weights[:, facet, None]
        for start in range(0, cases.shape[1], CHUNK):
            part = cases[facet, start : start + CHUNK].astype(np.float64)
            out[:, start : start + CHUNK] += asked @ part.T
    return out


def recall(found: Sequence[int], scores: NDArray[np.float64], k: int) -> float:
    """Return which share of the k places went to cases that belong there.

    Args:
        found: Numbers of cases, best first; those after the first k do not count.
        scores: The exact score of every case.
        k: How many cases were to be found.
    """
    lowest = np.partition(scores, -k)[-k]
    return float(np.sum(scores[list(set(found[:k]))] >= lowest - TIE)) / k


def same_order(found: Sequence[int], scores: NDArray[np.float64], k: int) -> bool:
    """Say whether the k best were found, each at its place; equal scores may change places."""
    if len(found) < k or len(set(found[:k])) < k:
        return False
    best = np.sort(scores)[::-1][:k]
    return bool(np.all(np.abs(scores[list(found[:k])] - best) <= TIE))
