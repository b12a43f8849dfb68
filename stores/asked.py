"""A query as the vector that a store is searched with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.stores.case import Case
from casewright.stores.engine import Point
from casewright.stores.hit import Hit
from casewright.stores.quality import QualityScale
from casewright.stores.schema import CaseSchema


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, embedded and weighted.

    Attributes:
        schema: Of the store that is searched.
        units: The facets' unit vectors of the query, concatenated.
        shares: One weight a facet, summing to 1.
        vector: What the engine is asked: the units scaled by their weights, and a number that
            meets the stored quality.
        constant: To add to a dot product, so that it is the score.
    """

    schema: CaseSchema
    units: NDArray[np.float32]
    shares: NDArray[np.float64]
    vector: NDArray[np.float32]
    constant: float

    @classmethod
    def of(
        cls,
        schema: CaseSchema,
        units: NDArray[np.float32],
        weights: Mapping[str, float] | None,
        lambda_b: float,
        scale: QualityScale,
    ) -> Asked:
        """Weigh an embedded query (RAGSys, equation 3, over MCBR-RAG's weighted cosines)."""
        shares = schema.weights(weights)
        factor, constant = scale.asked(lambda_b)
        vector = np.append(lambda_b * units * spread(schema, shares), factor)
        return cls(schema, units, shares, vector.astype(np.float32), constant)

    def hit(self, point: Point) -> Hit:
        """Return a point as a hit of this query."""
        assert point.vector is not None
        vector = point.vector[:-1]
        products = vector * self.units
        scores = {name: float(products[part].sum()) for name, part in self.schema.slices.items()}
        return Hit(
            case=Case.from_json(point.id, point.payload),
            score=point.score + self.constant,
            relevance=float(np.dot(self.shares, list(scores.values()))),
            facet_scores=scores,
            vector=vector,
        )

    def score(self, point: Point) -> float:
        """Return the dot product of a point with this query, as an engine would."""
        assert point.vector is not None
        return float(point.vector @ self.vector)


def spread(schema: CaseSchema, shares: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return each facet's weight for each of its dimensions."""
    lengths = [facet.dimension for facet in schema.facets]
    return np.repeat(shares, lengths).astype(np.float32)
