"""Reads a collection: finds hits, certified selections, duplicates, and points by id.

A certificate is a proof that the selection from a few candidates equals the selection from all
cases. Each pick is the case i with the highest value
``w_i = lambda_d * v_i - (1 - lambda_d) * max_c s(i, c)``; v_i is the score of i, and
s(i, c) its similarity to an earlier pick c. A maximum is at least the mean, so
``w_i <= lambda_d * v_i - (1 - lambda_d) * mean_c s(i, c)``. This bound is linear in the stored
vector of i: one dot-product search per pick finds the highest bounds among all cases. If only
candidates have a bound that reaches a pick's value, the selection from all cases has the same
picks. Otherwise, the other cases whose bound reaches a pick's value become candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from casewright.stores.case import Case, canonical_id, same_json
from casewright.stores.engines.engine import Engine, NoCollectionError, Point, Where
from casewright.stores.hit import DECIMALS, Hit
from casewright.stores.query import StoreQuery, dimension_weights
from casewright.stores.select import Pick, Selection, select
from casewright.stores.tenant import TENANT, is_visible, with_tenant

#: Upper bound of a search's limit, larger than any collection.
MAX_LIMIT = 1 << 31


@dataclass(frozen=True, slots=True)
class Finder:
    """Reads a tenant's cases, or all if ``tenant`` is ``None``; a missing collection has none."""

    engine: Engine
    collection: str
    tenant: str | None

    def points(self, ids: str | Sequence[str], *, vectors: bool = False) -> list[Point]:
        """Return the points of these ids, in the order of the ids; ignore unknown ids."""
        texts = [ids] if isinstance(ids, str) else ids
        # Case ids are UUIDs; any other text is an unknown id.
        uuids = [id_ for text in texts if (id_ := canonical_id(text))]
        try:
            points = self.engine.get(self.collection, uuids, vectors=vectors) if uuids else []
        except NoCollectionError:
            return []
        by_id = {point.id: point for point in points if is_visible(point, self.tenant)}
        return [by_id[id_] for id_ in uuids if id_ in by_id]

    def best(
        self, query: StoreQuery, k: int, where: Where | None, *, exact: bool = True
    ) -> list[Hit]:
        """Return the k best hits by rounded score, then id.

        More points are fetched while an unfetched case may have the last hit's score. With
        ``exact=False``, an engine may search approximately; a certificate needs an exact search.
        """
        limit, condition = min(k, MAX_LIMIT) + 2, with_tenant(where, self.tenant)
        engine, name = self.engine, self.collection
        while True:
            try:
                points = engine.search(name, query.vector, limit, condition, exact=exact)
            except NoCollectionError:
                return []
            hits = sorted(query.hits(points), key=lambda hit: hit.rank_key)
            if len(hits) < limit:
                return hits[:k]
            # The highest possible score of a case that was not fetched.
            bound = points[-1].score + query.quality_constant + query.slack
            if round(hits[k - 1].score, DECIMALS) > round(bound, DECIMALS):
                return hits[:k]
            limit *= 2

    def select(
        self,
        query: StoreQuery,
        k: int,
        *,
        lambda_d: float,
        weights: Mapping[str, float] | None,
        where: Where | None,
        initial_candidates: int,
        max_candidates: int,
    ) -> Selection:
        """Select k cases from the best hits and the cases that a proof adds; see the module."""
        initial_count = max(initial_candidates, 2 * k)
        hits = self.best(query, initial_count, where)
        complete = len(hits) < initial_count
        searches = 1
        while True:
            picks = select(hits, k, query.schema, lambda_d=lambda_d, weights=weights)
            try:
                rival_ids = [] if complete else self._rival_ids(query, picks, hits, where, lambda_d)
            except NoCollectionError:
                return Selection((), True, 0, searches)
            searches += 0 if complete else len(picks) - 1
            may_fetch = len(hits) + len(rival_ids) <= max(max_candidates, initial_count)
            # The rivals may have been deleted in the meantime.
            if not (points := self.points(rival_ids, vectors=True) if may_fetch else []):
                return Selection(picks, not rival_ids, len(hits), searches)
            hits += query.hits(points)

    def duplicate(self, case: Case, query: StoreQuery) -> Case | None:
        """Return a stored case with the same tenant and solution and a similar problem, if any.

        ``query`` is the embedded problem of ``case``, with the schema's own weights.
        """
        tenant = case.metadata.get(TENANT)
        # No condition can select the cases without a tenant, so the loop compares the tenants.
        where = {TENANT: tenant} if isinstance(tenant, (str, int)) else None
        limit = 10
        while True:
            hits = self.best(query, limit, where)
            similar = [hit.case for hit in hits if hit.relevance >= query.schema.near]
            for match in similar:
                if same_json((match.metadata.get(TENANT), match.solution), (tenant, case.solution)):
                    return match
            # A case that was not fetched is less similar than the last hit.
            if len(similar) < limit:
                return None
            limit *= 4

    def _rival_ids(
        self,
        query: StoreQuery,
        picks: Sequence[Pick],
        hits: Sequence[Hit],
        where: Where | None,
        lambda_d: float,
    ) -> list[str]:
        """Return the ids of rivals: cases not in ``hits`` whose bound reaches a pick's value."""
        # The first pick needs no proof: it is the best hit.
        if len(picks) < 2:
            return []
        vectors = np.array([pick.hit.vector for pick in picks[:-1]], dtype=np.float64)
        means = np.cumsum(vectors, axis=0) / np.arange(1, len(picks))[:, None]
        mean_vectors = np.zeros((len(means), len(query.vector)))
        mean_vectors[:, :-1] = means * dimension_weights(query.schema, query.facet_weights)
        bound_vectors = lambda_d * query.vector.astype(np.float64) - (1 - lambda_d) * mean_vectors
        query_vectors = np.ascontiguousarray(bound_vectors, dtype=np.float32)
        limit, condition = len(hits) + max(8, len(hits) // 2), with_tenant(where, self.tenant)
        rankings = self.engine.rank(self.collection, query_vectors, limit, condition)
        candidate_ids = {hit.case.id for hit in hits}
        rival_ids = dict.fromkeys(
            id_
            for pick, ranking in zip(picks[1:], rankings, strict=True)
            for id_, score in ranking
            if score + lambda_d * query.quality_constant >= pick.value - query.slack
            and id_ not in candidate_ids
        )
        return list(rival_ids)
