"""How well a sample stands for a pool, in figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from casewright.finetune.folds import SAME_GROUP
from casewright.finetune.queries.similarity import (
    Floats,
    Vectors,
    best_similarity,
    blocks,
    units,
)

#: Queries more alike than this are near duplicates.
NEAR_DUPLICATE = SAME_GROUP


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """Figures of a sample; similarities are cosines.

    Attributes:
        queries: How many.
        coverage: Mean over the large pool of the highest similarity to the sample.
        coverage_with_initial: The same where the initial pool counts beside the sample.
        mean_similarity: Mean similarity of two different queries of the sample; NaN below two.
        near_duplicates: Share of the sample that has another query of it above 0.9.
    """

    queries: int
    coverage: float
    coverage_with_initial: float
    mean_similarity: float
    near_duplicates: float


def pool_figures(sample: Vectors, large: Vectors, by_initial: Floats) -> PoolFigures:
    """Return the figures of a sample.

    Args:
        sample: Array (n, d), at least one query.
        large: Array (N, d), the large pool.
        by_initial: Array (N), the highest similarity of each of them to the initial pool.
    """
    near = best_similarity(large, sample)
    alike = best_similarity(sample, sample, others=True) if len(sample) > 1 else np.zeros(1)
    return PoolFigures(
        queries=len(sample),
        coverage=float(near.mean()),
        coverage_with_initial=float(np.maximum(near, by_initial).mean()),
        mean_similarity=_mean_similarity(sample),
        near_duplicates=float((alike > NEAR_DUPLICATE).mean()),
    )


def _mean_similarity(sample: Vectors) -> float:
    """Return the mean over all pairs: the squared length of the vectors' sum holds them all."""
    count = len(sample)
    if count < 2:
        return float("nan")
    total, own = np.zeros(sample.shape[1]), 0.0
    for part in blocks(count, 1024):
        rows = units(sample[part])
        total += rows.sum(axis=0)
        own += float((rows * rows).sum())
    return float((total @ total - own) / (count * (count - 1)))
