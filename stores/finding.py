"""Reading a collection: points by id, the best of a query, a certified selection, a twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from casewright.stores.asked import Asked
from casewright.stores.case import Case, canonical_id
from casewright.stores.certificate import bound_vectors, rivals
from casewright.stores.engine import Engine, NoCollectionError, Point, Where
from casewright.stores.hit import DECIMALS, Hit
from casewright.stores.select import Pick, Selection, select
from casewright.stores.tenant import FIELD, owned, within


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

    def best(self, asked: Asked, k: int, where: Where | None) -> list[Hit]:
        """Return the k best by rounded score, then id; fetch on while ties cross the cut."""

        def rank(point: Point) -> tuple[float, str]:
            return -round(point.score + asked.constant, DECIMALS), point.id

        limit, bound = k + 8, within(where, self.tenant)
        while True:
            try:
                found = self.engine.search(self.collection, asked.vector, limit, bound)
            except NoCollectionError:
                return []
            points = sorted(found, key=rank)
            if len(points) < limit or rank(points[k - 1])[0] < rank(points[-1])[0]:
                return [asked.hit(point) for point in points[:k]]
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
            missing = [] if complete else self._rivals(asked, picks, hits, where, lambda_d)
            searches += 0 if complete else len(picks) - 1
            if not missing or len(hits) + len(missing) > max(most, size):
                return Selection(picks, not missing, len(hits), searches)
            found = self.points(missing, vectors=True)
            hits += [asked.hit(replace(point, score=asked.score(point))) for point in found]

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
                if (other.metadata.get(FIELD), other.solution) == (tenant, case.solution):
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
