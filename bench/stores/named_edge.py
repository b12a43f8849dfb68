"""Three named vectors in Qdrant Edge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
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
_ID, _SCORE = attrgetter("id"), attrgetter("score")


class EdgeNamed(NamedVectors):
    """A shard with three Dot vectors, searched exactly."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def build(self, cases: Vectors) -> None:
        """Write all cases in batches; see ``System``."""
        from qdrant_edge import (
            Distance,
            EdgeConfig,
            EdgeShard,
            EdgeVectorParams,
            Point,
            UpdateOperation,
        )

        self._folder.mkdir()
        vectors = {name: EdgeVectorParams(size=DIMENSION, distance=Distance.Dot) for name in FACETS}
        self._shard = EdgeShard.create(str(self._folder), EdgeConfig(vectors=vectors))
        for start in range(0, cases.shape[1], BATCH):
            numbers = range(start, min(start + BATCH, cases.shape[1]))
            points = [
                Point(
                    n,
                    {name: cases[facet, n] for facet, name in enumerate(FACETS)},
                    {"problem": problem(n), "solution": solution(n)},
                )
                for n in numbers
            ]
            self._shard.update(UpdateOperation.upsert_points(points))

    def open(self) -> None:
        """Load the shard; see ``System``."""
        from qdrant_edge import EdgeShard

        self._shard = EdgeShard.load(str(self._folder))
        self.count = self._shard.info().points_count

    def search(self, asked: Sequence[Asked]) -> list[Scored]:
        """Search exactly, in one batch; see ``NamedVectors``."""
        from qdrant_edge import (
            Filter,
            HasIdCondition,
            Query,
            QueryBatchRequest,
            QueryRequest,
            SearchParams,
        )

        exact = SearchParams(exact=True)
        requests = [
            QueryRequest(
                query=Query.Nearest(one.vector.tolist(), using=one.name),
                limit=one.limit,
                filter=Filter(must=[HasIdCondition(set(one.among))]) if one.among else None,
                params=exact,
                with_payload=False,
                with_vector=False,
            )
            for one in asked
        ]
        return [
            Scored(
                np.fromiter(map(_ID, points), np.int64, len(points)),
                np.fromiter(map(_SCORE, points), np.float64, len(points)),
            )
            for points in self._shard.query_batch(QueryBatchRequest(requests))
        ]

    def payloads(self, numbers: Sequence[int]) -> dict[int, Mapping[str, Any]]:
        """Return payloads by number; see ``NamedVectors``."""
        records = self._shard.retrieve(list(numbers), True, False)
        return {int(str(record.id)): record.payload or {} for record in records}

    def formula(self, query: Query, weights: Weights, candidates: int) -> list[Found]:
        """Score prefetched candidates by a sum of products; see ``NamedVectors``."""
        from qdrant_edge import Expression, Formula, Prefetch, QueryRequest, SearchParams
        from qdrant_edge import Query as EdgeQuery

        exact = SearchParams(exact=True)
        prefetches = [
            Prefetch(
                query=EdgeQuery.Nearest(query[name].tolist(), using=name),
                limit=candidates,
                params=exact,
            )
            for name in weights
        ]
        terms = [
            Expression.Mult([Expression.Constant(share), Expression.Variable(f"$score[{place}]")])
            for place, share in enumerate(weights.values())
        ]
        missing = {f"$score[{place}]": 0.0 for place in range(len(weights))}
        request = QueryRequest(
            prefetches=prefetches,
            query=Formula(Expression.Sum(terms), missing),
            limit=K,
            with_payload=True,
        )
        return [
            Found(int(str(point.id)), point.score, point.payload or {})
            for point in self._shard.query(request)
        ]

    def close(self) -> None:
        """Close the shard; see ``System``."""
        self._shard.close()
