"""The usual way to weigh several vectors in Qdrant: one search a vector, or its own formula.

A collection keeps the facets as named vectors. Searches are merged in Python, with NumPy; or
Qdrant prefetches candidates of each vector and scores them by a formula. Either is exact only
where every case is a candidate: what is missing from a list counts as 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from casewright.bench.stores.data import K, Query, Vectors, Weights
from casewright.bench.stores.systems import Search


class Found(NamedTuple):
    """A case of an answer: its number, its score, and what was stored with it."""

    number: int
    score: float
    payload: Mapping[str, Any]


class Asked(NamedTuple):
    """A search of one named vector for ``limit`` cases, ``among`` these where any are given."""

    name: str
    vector: Vectors
    limit: int
    among: Sequence[int] = ()


class Scored(NamedTuple):
    """Numbers of cases and their scores, best first."""

    numbers: NDArray[np.int64]
    scores: NDArray[np.float64]


class NamedVectors(ABC):
    """Three named vectors in one collection; points' ids are the numbers of the cases."""

    #: How many cases there are.
    count: int

    @abstractmethod
    def search(self, asked: Sequence[Asked]) -> list[Scored]:
        """Search exactly, all in one request, for ids and scores only."""

    @abstractmethod
    def payloads(self, numbers: Sequence[int]) -> dict[int, Mapping[str, Any]]:
        """Return what was stored with these cases."""

    @abstractmethod
    def formula(self, query: Query, weights: Weights, candidates: int) -> list[Found]:
        """Prefetch candidates of each vector, and score them by the weighted sum."""

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
        return [found.number for found in answer]

    def _formula(self, query: Query, weights: Weights, *, candidates: int) -> list[Found]:
        used = _used(weights)
        return self.formula(query, used, candidates if len(used) > 1 else K)

    def _merged(
        self, query: Query, weights: Weights, *, candidates: int, rescored: bool = False
    ) -> list[Found]:
        used = _used(weights)
        # One vector's own order is exact: nothing is to be merged.
        limit = candidates if len(used) > 1 else K
        lists = self.search([Asked(name, query[name], limit) for name in used])
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
        """Ask each vector for the candidates of the others that its own list lacks."""
        union = np.unique(np.concatenate([scored.numbers for scored in lists]))
        asked, shares = [], list(used.values())
        for (name, share), scored in zip(used.items(), lists, strict=True):
            missing = np.setdiff1d(union, scored.numbers, assume_unique=True).tolist()
            if missing:
                asked.append(Asked(name, query[name], len(missing), missing))
                shares.append(share)
        return shares, [*lists, *(self.search(asked) if asked else [])]


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
