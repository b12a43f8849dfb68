"""Converts a query to the vector with which an engine is searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.errors import StoreDamagedError
from casewright.stores.case import Case
from casewright.stores.engines.engine import Point
from casewright.stores.hit import Hit
from casewright.stores.schema import CaseSchema
from casewright.stores.stored import QualityScale

#: Maximum error of a score in single precision.
SLACK = 1e-5
#: Upper bound of a computed cosine in single precision, or in a server's half precision.
MAX_COSINE = 1.01
#: Typical standard deviation of the cosines between a query and the cases, measured with MiniLM
#: embeddings of sentences.
COSINE_SPREAD = 0.1


@dataclass(frozen=True, slots=True)
class StoreQuery:
    """A query, embedded and weighted.

    ``units`` are the facets' unit vectors, concatenated. ``facet_weights`` sum to 1; ``lambda_b``
    is the share of the relevance. ``vector`` is the engine's query vector: ``units``, multiplied by
    ``facet_weights`` and ``lambda_b``, and at the end ``quality_factor``, which multiplies the
    stored quality. A case's score is the dot product of ``vector`` and the case's stored vector,
    plus ``quality_constant``. ``slack`` is the maximum error of a score.
    """

    schema: CaseSchema
    units: NDArray[np.float32]
    facet_weights: NDArray[np.float64]
    lambda_b: float
    quality_factor: float
    quality_constant: float
    vector: NDArray[np.float32]
    slack: float

    @classmethod
    def of(
        cls,
        schema: CaseSchema,
        units: NDArray[np.float32],
        weights: Mapping[str, float] | None,
        lambda_b: float,
        scale: QualityScale,
    ) -> StoreQuery:
        """Return a query for RAGSys's equation 3, with MCBR-RAG's weighted cosines as relevance."""
        facet_weights = schema.weights(weights)
        factor, constant = scale.query_terms(lambda_b)
        weighted_units = lambda_b * units * dimension_weights(schema, facet_weights)
        vector = np.append(weighted_units, factor).astype(np.float32)
        slack = SLACK * (1 + abs(1 - lambda_b) * (scale.high - scale.low))
        return cls(schema, units, facet_weights, lambda_b, factor, constant, vector, slack)

    @property
    def quality_leads(self) -> bool:
        """True if the quality changes the score more than the similarity does.

        Such a query needs an exact search: an HNSW graph links stored vectors with similar facets,
        and would miss cases of high quality. The standard deviations of both parts of the score are
        compared; that of a stored quality is 1 / 10 (see ``stored``).
        """
        return bool(abs(self.vector[-1]) / 10 > COSINE_SPREAD * np.linalg.norm(self.vector[:-1]))

    def hits(self, points: Sequence[Point]) -> list[Hit]:
        """Return points as hits of this query, in the order of the points.

        The engine's scores are replaced by scores in double precision, so that equal cases have
        equal scores on every engine. Raise ``StoreDamagedError`` for an impossible score.
        """
        if not points:
            return []
        vectors = np.array([point.vector for point in points], dtype=np.float32)
        starts = [facet_slice.start for facet_slice in self.schema.slices.values()]
        products = vectors[:, :-1] * self.units.astype(np.float64)
        facet_scores = np.add.reduceat(products, starts, axis=1)
        relevance = (facet_scores * self.facet_weights).sum(axis=1)
        quality = self.quality_factor * vectors[:, -1].astype(np.float64) + self.quality_constant
        self._check_scores(points, facet_scores, quality)
        cases = [Case.from_json(point.id, point.payload) for point in points]
        scores = (self.lambda_b * relevance + quality).tolist()
        names = list(self.schema.slices)
        scores_by_facet = [dict(zip(names, row, strict=True)) for row in facet_scores.tolist()]
        return list(map(Hit, cases, scores, relevance.tolist(), scores_by_facet, vectors[:, :-1]))

    def _check_scores(
        self,
        points: Sequence[Point],
        facet_scores: NDArray[np.float64],
        quality: NDArray[np.float64],
    ) -> None:
        """Raise ``StoreDamagedError`` for scores that no stored case can have, including NaN."""
        low, high = sorted((1 - self.lambda_b) * bound for bound in self.schema.quality_range)
        slack = self.slack + (MAX_COSINE - 1) * (high - low)
        possible = (np.abs(facet_scores) <= MAX_COSINE).all(axis=1)
        possible &= (low - slack <= quality) & (quality <= high + slack)
        if not possible.all():
            raise StoreDamagedError(
                f"The case {points[int(possible.argmin())].id} of {self.schema.name!r} has a score "
                "that no case can have: its vector is damaged. Run casewright check on the store's "
                "folder, or add the case anew."
            )


def dimension_weights(schema: CaseSchema, weights: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return a weight for each dimension of the concatenated facets: the weight of its facet."""
    return np.repeat(weights, [facet.dimension for facet in schema.facets]).astype(np.float32)
