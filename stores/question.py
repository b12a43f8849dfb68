"""A question with which a store is searched repeatedly, by its own or by other vectors."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores.engines.engine import NoCollectionError, Where
from casewright.stores.finding import Finder
from casewright.stores.hit import DECIMALS, Hit
from casewright.stores.query import SLACK, StoreQuery, dimension_weights
from casewright.stores.tenant import with_tenant


@dataclass(frozen=True, slots=True)
class Found:
    """A hit with the score of the search that returned it.

    Attributes:
        hit: The case and its score against the question.
        nearness: The case's score in the search, which need not use the question's vector.
    """

    hit: Hit
    nearness: float


@dataclass(frozen=True, slots=True)
class Question:
    """A question that is embedded once; ``CaseStore.question`` returns it.

    After every search, a hit's score is its similarity to the question; quality does not count.

    Attributes:
        query: The question, embedded and weighted.
        finder: Reads the store's collection.
        where: A condition on the metadata of all results.
    """

    text: str
    query: StoreQuery
    finder: Finder
    where: Where | None

    @property
    def units(self) -> NDArray[np.float32]:
        """The concatenated unit vectors of the question's facets, array (d,)."""
        return self.query.units

    @property
    def asked(self) -> StoreQuery:
        """The former name of ``query``."""
        warnings.warn(
            "Question.asked is now Question.query; the old name ends with the next release.",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.query

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return an array (n, d): the vectors of n texts, each embedded as a question."""
        schema = self.query.schema
        return schema.vectors([schema.query(text) for text in texts], query=True)

    def hits(self, ids: Sequence[str]) -> list[Hit]:
        """Return the cases of these ids as hits, in the order of the ids; ignore unknown ids."""
        return self.query.hits(self.finder.points(ids, vectors=True))

    def best(self, k: int, *, exclude: Collection[str] = ()) -> list[Found]:
        """Return the k best cases whose ids are not in ``exclude``, by score, then id."""
        excluded_ids = set(exclude)
        hits = self.finder.best(self.query, k + len(excluded_ids), self.where, exact=False)
        return [Found(hit, hit.score) for hit in hits if hit.case.id not in excluded_ids][:k]

    def nearest(
        self, vectors: NDArray[np.float32], k: int, *, exclude: Collection[str] = ()
    ) -> list[Found]:
        """Return the k cases nearest to any of m vectors, by exact searches.

        A case's nearness is its largest score for any of the vectors; a score is the weighted sum
        of the facets' dot products. ``vectors`` is an array (m, d), with facets concatenated as in
        ``Hit.vector``. Cases with an id in ``exclude`` are left out.
        """
        query_vectors = self._query_vectors(vectors)
        condition = with_tenant(self.where, self.finder.tenant)
        limit = k + len(exclude) + 2
        while k > 0:
            try:
                engine, collection = self.finder.engine, self.finder.collection
                rankings = engine.rank(collection, query_vectors, limit, condition)
            except NoCollectionError:
                return []
            nearness: dict[str, float] = {}
            for id_, score in itertools.chain.from_iterable(rankings):
                nearness[id_] = max(score, nearness.get(id_, score))
            # The highest possible score of a case that was not fetched.
            full_rankings = (ranking for ranking in rankings if len(ranking) == limit)
            bound = max((ranking[-1][1] for ranking in full_rankings), default=-np.inf)
            ids = nearness.keys() - set(exclude)
            best_ids = sorted(ids, key=lambda id_: (-round(nearness[id_], DECIMALS), id_))[:k]
            if len(best_ids) < k or round(nearness[best_ids[-1]], DECIMALS) > bound + SLACK:
                return [Found(hit, nearness[hit.case.id]) for hit in self.hits(best_ids)]
            # A case that was not fetched may have the last case's score: fetch more cases.
            limit *= 2
        return []

    def matching(self, where: Where, *, exclude: Collection[str] = ()) -> list[Found]:
        """Return every case that meets a condition and the question's condition, by score, then id.

        If both conditions have a field, the question's one counts. Cases with an id in ``exclude``
        are left out.
        """
        condition = with_tenant({**where, **(self.where or {})}, self.finder.tenant)
        excluded_ids = set(exclude)
        try:
            points = self.finder.engine.scroll(self.finder.collection, condition)
        except NoCollectionError:
            return []
        hits = self.hits([point.id for point in points if point.id not in excluded_ids])
        return [Found(hit, hit.score) for hit in sorted(hits, key=lambda hit: hit.rank_key)]

    def _query_vectors(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the engine's query vectors: weighted vectors, with the weight 0 for quality."""
        length = len(self.query.units)
        rows = np.asarray(vectors, dtype=np.float32)
        if rows.ndim != 2 or rows.shape[1] != length:
            problem = f"A search was given vectors of shape {rows.shape}."
            advice = f"Give an array (m, {length}): the schema's facets, concatenated."
            raise InputError(f"{problem} {advice}")
        weighted_rows = rows * dimension_weights(self.query.schema, self.query.facet_weights)
        return np.pad(weighted_rows.astype(np.float32), ((0, 0), (0, 1)))
