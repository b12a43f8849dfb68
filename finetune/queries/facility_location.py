"""Facility location: queries that stand for a whole pool.

The picks S maximise f(S) = sum over the pool's queries i of the highest similarity of i to a pick,
similarities below 0 counting as 0. f is monotone and submodular, so picking greedily reaches at
least (1 - 1/e) of the best value (Nemhauser, Wolsey and Fisher 1978).

Every candidate's gain is kept exact: a pick changes gains only through the queries that it is
nearer to than the picks before it, which after some tens of picks are few. Deferring the others'
gains (lazy greedy, Minoux 1978) computes more among short texts of one kind. No matrix of the pool
with itself is held.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.finetune.queries.similarity import (
    COLUMNS,
    DECIMALS,
    ROWS,
    Floats,
    Vectors,
    best_similarity,
    blocks,
    check_pools,
    units,
)


def facility_location(vectors: Vectors, size: int, *, chosen: Vectors | None = None) -> list[int]:
    """Pick queries of a pool greedily by facility location.

    Time grows with the square of the pool's size, memory with the pool alone.

    Args:
        vectors: Array (N, d), the pool: what is picked from, and what is to be stood for.
        chosen: Array (n, d), what stands for the pool already.

    Returns:
        Rows of the pool in the order of the picks. Gains are compared to six decimals; of equal
        ones the lower row is picked.

    Raises:
        InputError: The pool is no array of vectors, or smaller than ``size``.
    """
    given = vectors[:0] if chosen is None else chosen
    check_pools(vectors, given)
    count = len(vectors)
    if size > count:
        raise InputError(
            f"{size:,} queries are to be picked from {count:,}. Give a larger pool, or ask for "
            "fewer."
        )
    covered = np.zeros(count)
    if len(given) and count:
        covered = np.maximum(best_similarity(vectors, given), 0.0)
    # What a candidate gains at first is what it loses once nothing is left to gain.
    gains = _lost(vectors, np.arange(count), covered, np.full(count, np.inf))
    picks: list[int] = []
    while len(picks) < size:
        best = int(np.argmax(np.round(gains, DECIMALS)))
        picks.append(best)
        near = np.maximum(best_similarity(vectors, vectors[best : best + 1]), covered)
        nearer = np.flatnonzero(near > covered)
        gains -= _lost(vectors, nearer, covered[nearer], near[nearer])
        gains[best] = -np.inf
        covered = near
    return picks


def _lost(vectors: Vectors, rows: NDArray[np.int64], before: Floats, after: Floats) -> Floats:
    """Return what each of N candidates no longer gains where n queries are covered better.

    Args:
        vectors: Array (N, d), the candidates.
        before: Array (n), how well they were covered.
        after: Array (n), how well they are; infinity where nothing is left to gain.
    """
    lost = np.zeros(len(vectors))
    for part in blocks(len(rows), ROWS):
        own = units(vectors[rows[part]])
        low, high = before[part, None], after[part, None]
        for place in blocks(len(vectors), COLUMNS):
            near = own @ units(vectors[place]).T
            lost[place] += np.clip(near, low, high, out=near).sum(axis=0) - low.sum()
    return lost
