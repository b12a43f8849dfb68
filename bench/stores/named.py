"""The usual way to weigh several vectors in Qdrant: one search a vector, or its own formula.

A collection keeps the facets as named vectors. Searches are merged in Python, with NumPy; or
Qdrant prefetches candidates of each vector and scores them by a formula. Either is exact only
where every case is a candidate: a case that is missing from a list counts as 0 there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from casewright.bench.stores.data import DIMENSION, FACETS, K, Query, Vectors, Weights, texts_of
from casewright.bench.stores.systems import Search

#: Points that are written together.
BATCH = 1000
COLLECTION = "bench"


class Found(NamedTuple):
    """A case of an answer: its number, its score, and its payload."""

    number: int
    score: float
    payload: Mapping[str, Any]


class Request(NamedTuple):
    """A search of one named vector for ``limit`` cases, ``among`` some where these are given."""

    name: str
    vector: Vectors
    limit: int
    among: Sequence[int] = ()


class Scored(NamedTuple):
    """Numbers of cases and their scores, best first."""

    numbers: NDArray[np.int64]
    scores: NDArray[np.float64]

    @classmethod
    def of(cls, points: Sequence[Any]) -> Scored:
        """Return the numbers and scores of Qdrant's points."""
        numbers = np.fromiter(map(attrgetter("id"), points), np.int64, len(points))
        return cls(numbers, np.fromiter(map(attrgetter("score"), points), np.float64, len(points)))


class NamedVectors(ABC):
    """Three named Dot vectors in one collection; points' ids are the numbers of the cases."""

    #: How many cases there are.
    count: int

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @abstractmethod
    def search(self, requests: Sequence[Request]) -> list[Scored]:
        """Return ids and scores of exact searches, all in one request."""

    @abstractmethod
    def payloads(self, numbers: Sequence[int]) -> dict[int, Mapping[str, Any]]:
        """Return the payloads of these cases."""

    @abstractmethod
    def formula(self, query: Query, weights: Weights, candidates: int) -> list[Found]:
        """Return the best by the weighted sum, of prefetched candidates of each vector."""

    def searches(self) -> Mapping[str, Search]:
        """Return the ways to search; see ``System``."""
        return {
            "merged_all": partial(self._merged, candidates=self.count),
            "merged_50": partial(self._merged, candidates=50),
            "merged_50_rescored": partial(self._merged, candidates=50, rescored=True),
            "formula_50": partial(self._formula, candidates=50),
            "formula_100": partial(self._formula, candidates=100),
            "formula_all": partial(self._formula, candidates=self.count),
        }

    def numbers(self, answer: list[Found]) -> Sequence[int]:
        """Return the numbers of the cases; see ``System``."""
        return [case.number for case in answer]

    def _formula(self, query: Query, weights: Weights, *, candidates: int) -> list[Found]:
        used = _used(weights)
        return self.formula(query, used, candidates if len(used) > 1 else K)

    def _merged(
        self, query: Query, weights: Weights, *, candidates: int, rescored: bool = False
    ) -> list[Found]:
        used = _used(weights)
        # One vector's own order is exact: nothing is to be merged.
        limit = candidates if len(used) > 1 else K
        lists = self.search([Request(name, query[name], limit) for name in used])
        shares = list(used.values())
        if rescored and len(used) > 1:
            shares, lists = self._with_missing(query, used, lists)
        numbers, totals = _sums(shares, lists, self.count)
        best = np.argpartition(-totals, K - 1)[:K] if len(totals) > K else np.arange(len(totals))
        best = best[np.argsort(-totals[best])]
        chosen = [int(number) for number in numbers[best]]
        stored = self.payloads(chosen)
        scores = totals[best].tolist()
        return [Found(n, s, stored[n]) for n, s in zip(chosen, scores, strict=True)]

    def _with_missing(
        self, query: Query, used: Weights, lists: list[Scored]
    ) -> tuple[list[float], list[Scored]]:
        """Add the scores by each vector of the other vectors' candidates."""
        union = np.unique(np.concatenate([scored.numbers for scored in lists]))
        requests, shares = [], list(used.values())
        for (name, share), scored in zip(used.items(), lists, strict=True):
            missing = np.setdiff1d(union, scored.numbers, assume_unique=True).tolist()
            if missing:
                requests.append(Request(name, query[name], len(missing), missing))
                shares.append(share)
        return shares, [*lists, *(self.search(requests) if requests else [])]


def _used(weights: Weights) -> Weights:
    return {name: weight for name, weight in weights.items() if weight > 0}


def _sums(
    shares: Sequence[float], lists: Sequence[Scored], count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return cases and the weighted sums of their scores; by position where all are there."""
    if len(lists[0].numbers) == count:
        totals = np.zeros(count)
        for share, scored in zip(shares, lists, strict=True):
            totals[scored.numbers] += share * scored.scores
        return np.arange(count), totals
    listed = np.concatenate([scored.numbers for scored in lists])
    weighted = [share * scored.scores for share, scored in zip(shares, lists, strict=True)]
    numbers, places = np.unique(listed, return_inverse=True)
    totals = np.zeros(len(numbers))
    np.add.at(totals, places, np.concatenate(weighted))
    return numbers, totals


def _batches(cases: Vectors) -> Iterator[range]:
    for start in range(0, cases.shape[1], BATCH):
        yield range(start, min(start + BATCH, cases.shape[1]))


def _terms(weights: Weights) -> list[tuple[float, str]]:
    """Return each weight with a formula's name of its prefetch's score."""
    return [(share, f"$score[{number}]") for number, share in enumerate(weights.values())]


class EdgeNamed(NamedVectors):
    """A shard of Qdrant Edge."""

    def build(self, cases: Vectors) -> None:
        """Write all cases in batches; see ``System``."""
        import qdrant_edge as edge

        self._folder.mkdir()
        params = edge.EdgeVectorParams(size=DIMENSION, distance=edge.Distance.Dot)
        config = edge.EdgeConfig(vectors=dict.fromkeys(FACETS, params))
        self._shard = edge.EdgeShard.create(str(self._folder), config)
        for numbers in _batches(cases):
            points = [
                edge.Point(n, {name: cases[at, n] for at, name in enumerate(FACETS)}, texts_of(n))
                for n in numbers
            ]
            self._shard.update(edge.UpdateOperation.upsert_points(points))

    def open(self) -> None:
        """Load the shard; see ``System``."""
        import qdrant_edge as edge

        self._shard = edge.EdgeShard.load(str(self._folder))
        self.count = self._shard.info().points_count

    def search(self, requests: Sequence[Request]) -> list[Scored]:
        """Search exactly, in one batch; see ``NamedVectors``."""
        import qdrant_edge as edge

        queries = [
            edge.QueryRequest(
                query=edge.Query.Nearest(request.vector.tolist(), using=request.name),
                limit=request.limit,
                filter=edge.Filter(must=[edge.HasIdCondition(set(request.among))])
                if request.among
                else None,
                params=edge.SearchParams(exact=True),
                with_payload=False,
                with_vector=False,
            )
            for request in requests
        ]
        return list(map(Scored.of, self._shard.query_batch(edge.QueryBatchRequest(queries))))

    def payloads(self, numbers: Sequence[int]) -> dict[int, Mapping[str, Any]]:
        """Return payloads by number; see ``NamedVectors``."""
        records = self._shard.retrieve(list(numbers), True, False)
        return {int(str(record.id)): record.payload or {} for record in records}

    def formula(self, query: Query, weights: Weights, candidates: int) -> list[Found]:
        """Score prefetched candidates by a sum of products; see ``NamedVectors``."""
        import qdrant_edge as edge

        prefetches = [
            edge.Prefetch(
                query=edge.Query.Nearest(query[name].tolist(), using=name),
                limit=candidates,
                params=edge.SearchParams(exact=True),
            )
            for name in weights
        ]
        make = edge.Expression
        terms = [make.Mult([make.Constant(n), make.Variable(of)]) for n, of in _terms(weights)]
        missing = {of: 0.0 for _, of in _terms(weights)}
        request = edge.QueryRequest(
            prefetches=prefetches,
            query=edge.Formula(make.Sum(terms), missing),
            limit=K,
            with_payload=True,
        )
        points = self._shard.query(request)
        return [Found(int(str(p.id)), p.score, p.payload or {}) for p in points]

    def close(self) -> None:
        """Close the shard; see ``System``."""
        self._shard.close()


class LocalNamed(NamedVectors):
    """A collection of qdrant-client's local mode, which searches exactly."""

    def build(self, cases: Vectors) -> None:
        """Write all cases in batches; see ``System``."""
        from qdrant_client import QdrantClient, models

        self._client = QdrantClient(path=str(self._folder))
        params = models.VectorParams(size=DIMENSION, distance=models.Distance.DOT)
        self._client.create_collection(COLLECTION, vectors_config=dict.fromkeys(FACETS, params))
        for numbers in _batches(cases):
            own = cases[:, numbers.start : numbers.stop]
            points = models.Batch(
                ids=list(numbers),
                vectors={name: own[facet].tolist() for facet, name in enumerate(FACETS)},
                payloads=list(map(texts_of, numbers)),
            )
            self._client.upsert(COLLECTION, points=points)

    def open(self) -> None:
        """Load the collection; see ``System``."""
        from qdrant_client import QdrantClient

        self._client = QdrantClient(path=str(self._folder))
        self.count = self._client.count(COLLECTION).count

    def search(self, requests: Sequence[Request]) -> list[Scored]:
        """Search exactly, in one batch; see ``NamedVectors``."""
        from qdrant_client import models

        queries = [
            models.QueryRequest(
                query=request.vector.tolist(),
                using=request.name,
                limit=request.limit,
                filter=models.Filter(must=[models.HasIdCondition(has_id=list(request.among))])
                if request.among
                else None,
                with_payload=False,
                with_vector=False,
            )
            for request in requests
        ]
        answers = self._client.query_batch_points(COLLECTION, requests=queries)
        return [Scored.of(answer.points) for answer in answers]

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
        total = models.SumExpression(
            sum=[models.MultExpression(mult=list(term)) for term in _terms(weights)]
        )
        missing = {of: 0.0 for _, of in _terms(weights)}
        answer = self._client.query_points(
            COLLECTION,
            prefetch=prefetches,
            query=models.FormulaQuery(formula=total, defaults=missing),
            limit=K,
            with_payload=True,
        )
        return [Found(int(p.id), p.score, p.payload or {}) for p in answer.points]

    def close(self) -> None:
        """Close the client; see ``System``."""
        self._client.close()
