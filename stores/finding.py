"""Reading a collection: points by id, the best of a query, a certified selection, a twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from casewright.stores.asked import Asked
from casewright.stores.case import Case, canonical_id, same_json
from casewright.stores.certificate import bound_vectors, rivals
from casewright.stores.engines.engine import Engine, NoCollectionError, Point, Where
from casewright.stores.hit import DECIMALS, Hit
from casewright.stores.select import Pick, Selection, select
from casewright.stores.tenant import FIELD, owned, within

#: More cases than a collection can hold; an engine takes no larger number.
MOST = 1 << 31


@dataclass(frozen=True, slots=True)
class Finder:
    """Reads a collection as one tenant sees it.

    Attributes:
        engine: Where the collection is.
        collection: Its name; one that is not there is empty.
        tenant: Whose cases are seen; ``None`` for all.
    """

    engine: Engine
    collection: str
    tenant: str | None

    def points(self, ids: str | Sequence[str], *, vectors: bool = False) -> list[Point]:
        """Return the points of these ids, in their order; unknown ids are left out."""
        given = [ids] if isinstance(ids, str) else ids
        # What is no UUID is no case's id.
        wanted = [known for text in given if (known := canonical_id(text))]
        try:
            points = self.engine.get(self.collection, wanted, vectors=vectors) if wanted else []
        except NoCollectionError:
            return []
        found = {point.id: point for point in points if owned(point, self.tenant)}
        return [found[i] for i in wanted if i in found]

    def best(self, asked: Asked, k: int, where: Where | None, *, exact: bool = True) -> list[Hit]:
        """Return the k best by rounded score, then id; fetch on while ties cross the cut.

        Without ``exact``, an engine that was told how may search approximately: proofs and twins
        need all cases.
        """

        def rank(hit: Hit) -> tuple[float, str]:
            return -round(hit.score, DECIMALS), hit.case.id

        limit, bound = min(k, MOST) + 2, within(where, self.tenant)
        while True:
            try:
                found = self.engine.search(self.collection, asked.vector, limit, bound, exact=exact)
            except NoCollectionError:
                return []
            hits = sorted(asked.hits(found), key=rank)
            if len(hits) < limit:
                return hits[:k]
            # What a case that was not found may score.
            rest = found[-1].score + asked.constant + asked.slack
            if round(hits[k - 1].score, DECIMALS) > round(rest, DECIMALS):
                return hits[:k]
            limit *= 2

    def select(
        self,
        asked: Asked,
        k: int,
        *,
        lambda_d: float,
        weights: Mapping[str, float] | None,
        where: Where | None,
        candidates: int,
        most: int,
    ) -> Selection:
        """Select from candidates, and from every case that a proof finds missing among them."""
        size = max(candidates, 2 * k)
        hits = self.best(asked, size, where)
        complete, searches = len(hits) < size, 1
        while True:
            picks = select(hits, k, asked.schema, lambda_d=lambda_d, weights=weights)
            try:
                missing = [] if complete else self._rivals(asked, picks, hits, where, lambda_d)
            except NoCollectionError:
                return Selection((), True, 0, searches)
            searches += 0 if complete else len(picks) - 1
            room = len(hits) + len(missing) <= max(most, size)
            # None are found where they were deleted meanwhile.
            if not (found := self.points(missing, vectors=True) if room else []):
                return Selection(picks, not missing, len(hits), searches)
            hits += asked.hits(found)

    def twin(self, case: Case, asked: Asked) -> Case | None:
        """Return a case of the same tenant with a near problem and the same solution.

        Args:
            case: The case.
            asked: It, as a query by the schema's own weights.
        """
        tenant = case.metadata.get(FIELD)
        # No condition finds the cases that have no tenant: those are told apart below.
        where = {FIELD: tenant} if isinstance(tenant, (str, int)) else None
        limit = 10
        while True:
            hits = self.best(asked, limit, where)
            near = [hit.case for hit in hits if hit.relevance >= asked.schema.near]
            for other in near:
                theirs = other.metadata.get(FIELD), other.solution
                if same_json(theirs, (tenant, case.solution)):
                    return other
            if len(near) < limit:
                return None
            limit *= 4

    def _rivals(
        self,
        asked: Asked,
        picks: Sequence[Pick],
        hits: Sequence[Hit],
        where: Where | None,
        lambda_d: float,
    ) -> list[str]:
        """Return the ids of cases that may have been picked, had they been candidates."""
        if len(picks) < 2:
            return []
        seen = {hit.case.id for hit in hits}
        vectors = bound_vectors(asked, picks, lambda_d)
        limit = len(hits) + max(8, len(hits) // 2)
        found = self.engine.rank(
            self.collection, np.ascontiguousarray(vectors), limit, within(where, self.tenant)
        )
        return rivals(asked, picks, found, seen, lambda_d)
