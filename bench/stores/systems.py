"""The compared systems: Casewright's store, cbrkit, and Qdrant with several named vectors.

cbrkit compares the query with every case in Python (Lenz et al. 2024). cbrkit is fastest with an
aggregator of our own, and with similarity functions that take all cases in one call.

In Qdrant the facets are named vectors. Each vector's nearest cases are candidates, which NumPy
merges or Qdrant scores by a formula. Other cases score 0 for this vector, so both methods are exact
only if every case is a candidate of every vector.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from operator import attrgetter, getitem
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from casewright.bench.stores.data import DIMENSION, FACETS, K, Query, Vectors, Weights, texts_of
from casewright.errors import DependencyError
from casewright.stores import Case, CaseSchema, CaseStore, Components, Facet, Hit

#: A search; each system has its own form of answer.
Search = Callable[[Query, Weights], Any]
#: Prefix of cbrkit's supported versions, the newest ones for Python 3.11.
SUPPORTED_PREFIX = "0.14."


class System(ABC):
    """A compared system, which runs in its own process."""

    @abstractmethod
    def build(self, vectors: Vectors) -> None:
        """Build the system from unit vectors (facets, cases, dimension); texts are ``texts_of``."""

    def open(self) -> None:  # noqa: B027
        """Open the system, which another process built; do nothing if it is in memory."""

    @abstractmethod
    def searches(self) -> Mapping[str, Search]:
        """Return the searches by name; a search is a user's whole call, and returns cases."""

    @abstractmethod
    def case_numbers(self, answer: Any) -> Sequence[int]:
        """Return the numbers of the cases in an answer, best first."""

    def close(self) -> None:  # noqa: B027
        """Close the files of the system, if it has any."""


class Casewright(System):
    """A ``CaseStore``, which concatenates the vectors of a case's facets.

    Facets look up a case's vector by the number in its text, so no encoder's time is measured.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._vectors = np.empty((len(FACETS), 0, DIMENSION), dtype=np.float32)
        self._schema = CaseSchema("bench", tuple(self._facet(n) for n in range(len(FACETS))))

    def build(self, vectors: Vectors) -> None:
        """Add all cases in one call; see ``System``."""
        self._store = CaseStore(self._schema, self._folder)
        cases = (Case(**texts_of(n), id=str(UUID(int=n))) for n in range(vectors.shape[1]))
        # Only ``add`` needs the vectors; later they would count as the store's memory.
        empty, self._vectors = self._vectors, vectors
        self._store.add(cases, progress=False)
        self._vectors = empty

    def open(self) -> None:
        """Open the store, and read a case so that the store is loaded; see ``System``."""
        self._store = CaseStore(self._schema, self._folder)
        self._store.get(str(UUID(int=0)))

    def searches(self) -> Mapping[str, Search]:
        """Return the store's search; see ``System``."""
        return {"casewright": lambda query, weights: self._store.search(query, K, weights=weights)}

    def case_numbers(self, answer: list[Hit]) -> Sequence[int]:
        """Return the numbers of the cases; see ``System``."""
        return [UUID(hit.case.id).int for hit in answer]

    def close(self) -> None:
        """Close the store; see ``System``."""
        self._store.close()

    def _facet(self, number: int) -> Facet:
        name = FACETS[number]

        def embed_case(problems: Sequence[Components]) -> Vectors:
            numbers = [int(problem[name].split(" ", 1)[0]) for problem in problems]
            return np.asarray(self._vectors[number, numbers])

        def embed_query(problems: Sequence[Components]) -> Vectors:
            return np.stack([problem[name] for problem in problems])

        encode = (embed_case, embed_query)
        return Facet(name, (name,), DIMENSION, *encode, describe=str, model="looked up")


def check_cbrkit() -> None:
    """Raise ``DependencyError`` if cbrkit is not installed, or has another interface."""
    try:
        import cbrkit  # noqa: F401
    except ImportError as error:
        raise DependencyError(
            "bench stores compares with cbrkit, which is not installed. "
            "Run: pip install 'casewright[bench]'"
        ) from error
    installed = version("cbrkit")
    if not installed.startswith(SUPPORTED_PREFIX):
        raise DependencyError(
            f"bench stores compares with cbrkit {SUPPORTED_PREFIX}x; installed is {installed}, "
            "which has another interface. Run: pip install 'cbrkit>=0.14,<0.15'"
        )


class Cbrkit(System):
    """cbrkit, with the cases in memory as a dict; a case is a dict of attributes."""

    def build(self, vectors: Vectors) -> None:
        """Put all cases into memory; see ``System``."""
        # The cases have views of this array, in which an attribute's vectors are contiguous.
        copied = np.array(vectors)
        self._cases: dict[int, dict[str, Any]] = {
            n: {**{name: copied[facet, n] for facet, name in enumerate(FACETS)}, **texts_of(n)}
            for n in range(copied.shape[1])
        }

    def searches(self) -> Mapping[str, Search]:
        """Return cbrkit's fastest search, and its documentation's search; see ``System``."""
        return {"cbrkit": self._search_fast, "cbrkit_documented": self._search_as_documented}

    def case_numbers(self, answer: Any) -> Sequence[int]:
        """Return the numbers of the cases; see ``System``."""
        return list(answer.ranking)

    def _search_fast(self, query: Query, weights: Weights) -> Any:
        import cbrkit

        weights = _positive_weights(weights)

        def weighted_sum(similarities: Any) -> float:
            return float(sum(weights[name] * value for name, value in similarities.items()))

        functions = dict.fromkeys(weights, _all_cosines)
        compare = cbrkit.sim.attribute_value(
            attributes=functions, aggregator=weighted_sum, value_getter=getitem
        )
        return cbrkit.retrieval.apply(self._cases, query, cbrkit.retrieval.build(compare, limit=K))

    def _search_as_documented(self, query: Query, weights: Weights) -> Any:
        import cbrkit

        compare = cbrkit.sim.attribute_value(
            attributes=dict.fromkeys(weights, _cosine),
            aggregator=cbrkit.sim.aggregator(pooling="mean", pooling_weights=weights),
        )
        return cbrkit.retrieval.apply(self._cases, query, cbrkit.retrieval.build(compare, limit=K))


# cbrkit passes all cases at once to a function with a parameter ``x_map``, else pairs of values.
def _all_cosines(x_map: Mapping[int, Vectors], y: Vectors) -> dict[int, float]:
    rows = list(x_map.values())
    scores = np.concatenate(rows).reshape(len(rows), -1) @ y
    return dict(zip(x_map, scores.tolist(), strict=True))


def _cosine(x: Vectors, y: Vectors) -> float:
    return float(np.dot(x, y))


#: Number of cases in one write.
BATCH_SIZE = 1000
#: Numbers of cases and their scores, best first.
ScoredCases = tuple[NDArray[np.int64], NDArray[np.float64]]


class Point(NamedTuple):
    """A case in an answer: number, score, and payload."""

    number: int
    score: float
    payload: Mapping[str, Any]


class NamedVectors(System):
    """Qdrant; a case is a point with its number as the id, and a vector named after each facet."""

    case_count: int  # set by ``open``

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def build(self, vectors: Vectors) -> None:
        """Write all cases in batches; see ``System``."""
        import qdrant_edge as edge

        self._folder.mkdir()
        params = edge.EdgeVectorParams(size=DIMENSION, distance=edge.Distance.Dot)
        config = edge.EdgeConfig(vectors=dict.fromkeys(FACETS, params))
        self._shard = edge.EdgeShard.create(str(self._folder), config)
        for start in range(0, vectors.shape[1], BATCH_SIZE):
            points = [
                edge.Point(n, {name: vectors[f, n] for f, name in enumerate(FACETS)}, texts_of(n))
                for n in range(start, min(start + BATCH_SIZE, vectors.shape[1]))
            ]
            self._shard.update(edge.UpdateOperation.upsert_points(points))

    def open(self) -> None:
        """Load the shard; see ``System``."""
        import qdrant_edge as edge

        self._shard = edge.EdgeShard.load(str(self._folder))
        self.case_count = self._shard.info().points_count

    def close(self) -> None:
        """Close the shard; see ``System``."""
        self._shard.close()

    def searches(self) -> Mapping[str, Search]:
        """Return searches that merge candidates, and searches by a formula; see ``System``."""
        return {
            "merged_all": partial(self._search_merged, candidates=self.case_count),
            "merged_50": partial(self._search_merged, candidates=50),
            "merged_50_rescored": partial(self._search_merged, candidates=50, rescored=True),
            "formula_50": partial(self._search_by_formula, candidates=50),
            "formula_100": partial(self._search_by_formula, candidates=100),
            "formula_all": partial(self._search_by_formula, candidates=self.case_count),
        }

    def case_numbers(self, answer: list[Point]) -> Sequence[int]:
        """Return the numbers of the cases; see ``System``."""
        return [case.number for case in answer]

    def _search_by_formula(self, query: Query, weights: Weights, *, candidates: int) -> list[Point]:
        """Score prefetched candidates by a weighted sum of their scores."""
        import qdrant_edge as edge

        weights = _positive_weights(weights)
        prefetches = [
            edge.Prefetch(
                query=edge.Query.Nearest(query[name].tolist(), using=name),
                limit=candidates if len(weights) > 1 else K,
                params=edge.SearchParams(exact=True),
            )
            for name in weights
        ]
        expression = edge.Expression
        # A formula refers to the scores of the prefetches by these names.
        score_names = [f"$score[{number}]" for number in range(len(weights))]
        terms = [
            expression.Mult([expression.Constant(weight), expression.Variable(name)])
            for weight, name in zip(weights.values(), score_names, strict=True)
        ]
        formula = edge.Formula(expression.Sum(terms), dict.fromkeys(score_names, 0.0))
        search = edge.QueryRequest(prefetches=prefetches, query=formula, limit=K, with_payload=True)
        return [Point(int(str(p.id)), p.score, p.payload or {}) for p in self._shard.query(search)]

    def _search_merged(
        self, query: Query, weights: Weights, *, candidates: int, rescored: bool = False
    ) -> list[Point]:
        """Search by each vector, and merge the hits; ``rescored`` adds the scores they lack."""
        weights = _positive_weights(weights)
        # If only one vector counts, its K nearest cases are the answer.
        limit = candidates if len(weights) > 1 else K
        lists = self._run([self._nearest(query, name, limit) for name in weights])
        list_weights = list(weights.values())
        if rescored and len(weights) > 1:
            list_weights, lists = self._with_missing_scores(query, weights, lists)
        numbers, totals = _sums(list_weights, lists, self.case_count)
        best = np.argpartition(-totals, K - 1)[:K] if len(totals) > K else np.arange(len(totals))
        best = best[np.argsort(-totals[best])]
        best_numbers, scores = numbers[best].tolist(), totals[best].tolist()
        records = self._shard.retrieve(best_numbers, with_payload=True, with_vector=False)
        payloads = {int(str(record.id)): record.payload or {} for record in records}
        return [Point(n, score, payloads[n]) for n, score in zip(best_numbers, scores, strict=True)]

    def _nearest(self, query: Query, name: str, limit: int, among: Sequence[int] = ()) -> Any:
        """Return a request for an exact search by one vector; ``among`` limits the cases."""
        import qdrant_edge as edge

        return edge.QueryRequest(
            query=edge.Query.Nearest(query[name].tolist(), using=name),
            limit=limit,
            filter=edge.Filter(must=[edge.HasIdCondition(set(among))]) if among else None,
            params=edge.SearchParams(exact=True),
            with_payload=False,
            with_vector=False,
        )

    def _run(self, requests: list[Any]) -> list[ScoredCases]:
        import qdrant_edge as edge

        return [
            (
                np.fromiter(map(attrgetter("id"), points), np.int64, len(points)),
                np.fromiter(map(attrgetter("score"), points), np.float64, len(points)),
            )
            for points in self._shard.query_batch(edge.QueryBatchRequest(requests))
        ]

    def _with_missing_scores(
        self, query: Query, weights: Weights, lists: list[ScoredCases]
    ) -> tuple[list[float], list[ScoredCases]]:
        """Return weights and lists; for each vector, add a list of the cases that it lacks."""
        all_numbers = np.unique(np.concatenate([numbers for numbers, _ in lists]))
        requests, list_weights = [], list(weights.values())
        for (name, weight), (numbers, _) in zip(weights.items(), lists, strict=True):
            if missing := np.setdiff1d(all_numbers, numbers, assume_unique=True).tolist():
                requests.append(self._nearest(query, name, len(missing), missing))
                list_weights.append(weight)
        return list_weights, [*lists, *(self._run(requests) if requests else [])]


def _positive_weights(weights: Weights) -> Weights:
    return {name: weight for name, weight in weights.items() if weight > 0}


def _sums(
    weights: Sequence[float], lists: Sequence[ScoredCases], case_count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the numbers of the listed cases, and the weighted sums of their scores."""
    weighted_scores = [weight * scores for weight, (_, scores) in zip(weights, lists, strict=True)]
    if len(lists[0][0]) == case_count:
        # All vectors' lists are equally long, so each has all cases.
        totals = np.zeros(case_count)
        for (numbers, _), values in zip(lists, weighted_scores, strict=True):
            totals[numbers] += values
        return np.arange(case_count), totals
    listed = np.concatenate([numbers for numbers, _ in lists])
    numbers, positions = np.unique(listed, return_inverse=True)
    totals = np.zeros(len(numbers))
    np.add.at(totals, positions, np.concatenate(weighted_scores))
    return numbers, totals
