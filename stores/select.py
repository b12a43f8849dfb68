"""Selection by maximal marginal relevance with quality bias (RAGSys, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from casewright.errors import InputError
from casewright.stores.hit import DECIMALS, Hit
from casewright.stores.schema import CaseSchema


@dataclass(frozen=True, slots=True)
class Pick:
    """A selected hit, with the numbers that it was selected by.

    Attributes:
        hit: The hit; ``hit.score`` is its relevance with the quality bias inside.
        redundancy: Its highest similarity to what was picked before it; 0 for the first.
        value: ``lambda_d * score - (1 - lambda_d) * redundancy``.
    """

    hit: Hit
    redundancy: float
    value: float


def select(
    hits: Sequence[Hit],
    k: int,
    schema: CaseSchema,
    *,
    lambda_d: float = 0.75,
    weights: Mapping[str, float] | None = None,
) -> list[Pick]:
    """Pick k of the hits, each relevant and unlike those before it, in time O(k * n).

    Args:
        hits: Candidates of one search, scores with the quality bias of their ``lambda_b``.
        k: How many to pick; fewer come back where there are fewer hits.
        schema: The schema of the store that was searched.
        lambda_d: Share of the relevance, from 0 (nothing but diversity) to 1 (no diversity).
        weights: The weights of the search; redundancy uses the same, without the quality number.

    Raises:
        InputError: ``lambda_d`` lies outside 0 to 1, or ``k`` below 0.
    """
    if not 0 <= lambda_d <= 1 or k < 0:
        raise InputError(f"k={k}, lambda_d={lambda_d}: k is at least 0, lambda_d from 0 to 1.")
    if not hits:
        return []
    roots = np.sqrt(schema.weights(weights))
    vectors = np.stack([hit.vector for hit in hits]).astype(np.float64)
    for facet, root in zip(schema.facets, roots, strict=True):
        vectors[:, schema.slices[facet.name]] *= root
    scores = np.array([hit.score for hit in hits])
    redundancy = np.zeros(len(hits))
    left = list(range(len(hits)))
    picks: list[Pick] = []
    while left and len(picks) < k:
        values = lambda_d * scores - (1 - lambda_d) * redundancy
        best = min(left, key=lambda i: (-round(float(values[i]), DECIMALS), hits[i].case.id))
        picks.append(Pick(hits[best], float(redundancy[best]), float(values[best])))
        left.remove(best)
        near = vectors @ vectors[best]
        redundancy = near if len(picks) == 1 else np.maximum(redundancy, near)
    return picks
