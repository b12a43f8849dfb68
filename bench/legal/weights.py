"""Which weighting is best: every one of a grid, scored from the facets' cosines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from casewright.bench.legal.measures import Ranks, Weighting, f1_at_k
from casewright.stores.hit import DECIMALS

#: Weights are multiples of one over this.
STEPS = 20

Cosines = NDArray[np.float64]


def simplex() -> Iterator[Weighting]:
    """Yield every weighting of three facets in steps of 0.05: weights sum to 1."""
    for first in range(STEPS + 1):
        for second in range(STEPS + 1 - first):
            third = STEPS - first - second
            yield first / STEPS, second / STEPS, third / STEPS


def blend(cosines: Cosines, weights: Weighting) -> Cosines:
    """Return the weighted sum of the facets' cosines, rounded as a store compares scores.

    Args:
        cosines: Array (3, questions, cases).
        weights: Of the facets.

    Returns:
        Array (questions, cases).
    """
    scores: Cosines = np.tensordot(np.asarray(weights), cosines, axes=1)
    return scores.round(DECIMALS)


def ranks_of(scores: Cosines, order: NDArray[np.int64], parents: NDArray[np.int64]) -> Ranks:
    """Return the ranks of parents; equal scores are ordered as the store orders them.

    Args:
        scores: Array (questions, cases).
        order: Array (cases,): each case's place among the cases sorted by id.
        parents: Array (questions, 2) of positions of cases.

    Returns:
        Array (questions, 2), counted from 1.
    """
    ranks = np.empty(parents.shape, dtype=np.int64)
    for column in range(parents.shape[1]):
        parent = parents[:, column]
        own = np.take_along_axis(scores, parent[:, None], axis=1)
        before = (scores > own) | ((scores == own) & (order[None, :] < order[parent][:, None]))
        ranks[:, column] = before.sum(axis=1) + 1
    return ranks


def best_weighting(
    sets: Sequence[tuple[Cosines, NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[Weighting, float]:
    """Return the weighting of the highest mean F1 over all k, and that F1.

    Args:
        sets: For each set its development questions: cosines, order and parents as above. The
            mean of the sets' means counts; of equals the first of the grid.
    """
    found: tuple[Weighting, float] | None = None
    for weights in simplex():
        means = [
            f1_at_k(ranks_of(blend(cosines, weights), order, parents)).mean()
            for cosines, order, parents in sets
        ]
        score = float(np.mean(means))
        if found is None or score > found[1]:
            found = weights, score
    assert found is not None
    return found
