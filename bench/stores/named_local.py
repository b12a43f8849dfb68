"""Three named vectors in qdrant-client's local mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from casewright.bench.stores.data import (
    DIMENSION,
    FACETS,
    K,
    Query,
    Vectors,
    Weights,
    problem,
    solution,
)
from casewright.bench.stores.named import Asked, Found, NamedVectors, Scored

#: Points that are written together.
BATCH = 1000
COLLECTION = "bench"


class LocalNamed(NamedVectors):
    """A collection with three Dot vectors; local mode searches exactly."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def build(self, cases: Vectors) -> None:
        """Write all cases in batches; see ``System``."""
        from qdrant_client import QdrantClient, models

        self._client = QdrantClient(path=str(self._folder))
        params = models.VectorParams(size=DIMENSION, distance=models.Distance.DOT)
        self._client.create_collection(COLLECTION, vectors_config=dict.fromkeys(FACETS, params))
        for start in range(0, cases.shape[1], BATCH):
            numbers = range(start, min(start + BATCH, cases.shape[1]))
            self._client.upsert(
                COLLECTION,
                points=models.Batch(
                    ids=list(numbers),
                    vectors={
                        name: cases[facet, numbers.start : numbers.stop].tolist()
                        for facet, name in enumerate(FACETS)
                    },
                    payloads=[{"problem": problem(n), "solution": solution(n)} for n in numbers],
                ),
            )

    def open(self) -> None:
        """Load the collection; see ``System``."""
        from qdrant_client import QdrantClient

        self._client = QdrantClient(path=str(self._folder))
        self.count = self._client.count(COLLECTION).count

    def search(self, asked: Sequence[Asked]) -> list[Scored]:
        """Search exactly, in one batch; see ``NamedVectors``."""
        from qdrant_client import models

        requests = [
            models.QueryRequest(
                query=one.vector.tolist(),
                using=one.name,
                limit=one.limit,
                filter=models.Filter(must=[models.HasIdCondition(has_id=list(one.among))])
                if one.among
                else None,
                with_payload=False,
                with_vector=False,
            )
            for one in asked
        ]
        return [
            Scored(
                np.array([point.id for point in answer.points], dtype=np.int64),
                np.array([point.score for point in answer.points]),
            )
            for answer in self._client.query_batch_points(COLLECTION, requests=requests)
        ]

    def payloads(self, numbers: Sequence[int]) -> dict[int, Mapping[str, Any]]:
        """Return payloads by number; see ``NamedVectors``."""
        records = self._client.retrieve(COLLECTION, list(numbers), with_payload=True)
        return {int(record.id): record.payload or {} for record in records}

    def formula(self, query: Query, weights: Weights, candidates: int) -> list[Found]:
        """Score prefetched candidates by a sum of products; see ``NamedVectors``."""
        from qdrant_client import models

        prefetches = [
            models.Prefetch(query=query[name].tolist(), using=name, limit=candidates)
            for name in weights
        ]
        terms = [
            models.MultExpression(mult=[share, f"$score[{place}]"])
            for place, share in enumerate(weights.values())
        ]
        missing = {f"$score[{place}]": 0.0 for place in range(len(weights))}
        answer = self._client.query_points(
            COLLECTION,
            prefetch=prefetches,
            query=models.FormulaQuery(
                formula=models.SumExpression(sum=list(terms)), defaults=missing
            ),
            limit=K,
            with_payload=True,
        )
        return [Found(int(p.id), p.score, p.payload or {}) for p in answer.points]

    def close(self) -> None:
        """Close the client; see ``System``."""
        self._client.close()
