"""The case store: add, get, search, retain, delete, count over a vector engine."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError, StoreError
from casewright.stores import connections
from casewright.stores.case import Case, canonical_id, case_id, json_plain, now
from casewright.stores.engine import Engine, NoCollectionError, Point, Where
from casewright.stores.facet import Components
from casewright.stores.hit import DECIMALS, Hit, Retained
from casewright.stores.layout import layout_of, scale_of
from casewright.stores.progress import progress_bar
from casewright.stores.quality import QualityScale, finite
from casewright.stores.schema import CaseSchema
from casewright.stores.where import check_where

#: Cases that are encoded together and written together.
BATCH = 256


class CaseStore:
    """Cases of one schema in one place.

    Several stores may share a collection: it is made by the first ``add`` that needs it, and one
    that another store removed counts as empty.

    Args:
        schema: What the cases have in common.
        location: ``":memory:"``, a folder, or the URL of a Qdrant server or cluster.
        api_key: For a server that asks for one.
        lock_seconds: How long to wait for a folder that another process holds.
        timeout: Seconds for one request to a server.
        engine: What a new folder is written by: ``"edge"``, Qdrant Edge, or ``"local"``,
            qdrant-client's local mode. ``None`` takes Edge where it is installed; a folder that
            is there is opened by what wrote it.

    Raises:
        InputError: The location is neither of these, or was written by another engine.
        DependencyError: The engine that wrote the folder is not installed.
        StoreLockedError: Another process holds the folder.
        StoreDamagedError: The folder's files cannot be read.
        StoreUnavailableError: The server does not answer.
        SchemaMismatchError: The collection was built with another schema.
    """

    def __init__(
        self,
        schema: CaseSchema,
        location: str | Path = ":memory:",
        *,
        api_key: str | None = None,
        lock_seconds: float = 0.0,
        timeout: int = 10,
        engine: str | None = None,
    ) -> None:
        self.schema = schema
        self.location = str(location)
        self._lock = threading.Lock()
        self._closed = False
        self._key, self._engine = connections.acquire(
            location, api_key=api_key, lock_seconds=lock_seconds, timeout=timeout, engine=engine
        )
        try:
            self._scale(fresh=True)
        except BaseException:
            self.close()
            raise

    def add(self, cases: Iterable[Case], *, progress: bool | None = None) -> list[str]:
        """Write cases, replacing those of the same id, and return their ids.

        Cases are encoded and written in batches. When it raises, the batches before the one that
        failed are stored.

        Args:
            cases: What to write.
            progress: Show a bar on stderr; ``None`` shows it on a terminal for long work.

        Raises:
            InputError: A case is not JSON-plain, or its quality or embedding is not finite.
        """
        complete = [self._completed(case) for case in cases]
        scale: QualityScale | None = None
        label = f"Adding cases to {self.schema.name}"
        with progress_bar(label, len(complete), show=progress) as advance:
            for start in range(0, len(complete), BATCH):
                batch = complete[start : start + BATCH]
                facets = self.schema.vectors([case.problem for case in batch])
                # Not before the first batch is encoded: where that fails, no collection is made.
                scale = scale or self._scale(fresh=True) or self._create(complete)
                quality = np.array([[scale.stored(case.quality)] for case in batch])
                self.engine.upsert(
                    self.schema.name,
                    [case.id for case in batch],
                    np.concatenate([facets, quality], axis=1).astype(np.float32),
                    [case.to_json() for case in batch],
                )
                advance(len(batch))
        return [case.id for case in complete]

    def get(self, ids: str | Sequence[str]) -> list[Case]:
        """Return the cases of these ids, in their order; unknown ids are left out."""
        wanted = _uuids(ids)
        try:
            points = self.engine.get(self.schema.name, wanted) if wanted else []
        except NoCollectionError:
            return []
        found = {point.id: point for point in points}
        return [_case(found[i]) for i in wanted if i in found]

    def all(self, where: Where | None = None) -> list[Case]:
        """Return every case that matches, ordered by id."""
        try:
            points = self.engine.scroll(self.schema.name, where)
        except NoCollectionError:
            return []
        return sorted((_case(point) for point in points), key=lambda case: case.id)

    def search(
        self,
        query: str | Components,
        k: int = 10,
        *,
        weights: Mapping[str, float] | None = None,
        lambda_b: float = 1.0,
        where: Where | None = None,
    ) -> list[Hit]:
        """Return the k best cases, by one dot-product search.

        Args:
            query: A problem, some of its components, or one text that stands for all of them.
            k: How many cases; fewer come back where the store holds fewer.
            weights: Facet name to weight, at least 0; scaled to sum to 1. Facets that are not
                named weigh 0. ``None`` uses the facets' own weights.
            lambda_b: Share of the relevance, from 0 to 1; the rest is the quality's
                (RAGSys, equation 3).
            where: Metadata that a case must have.

        Returns:
            Hits ordered by score to six decimals, then id.

        Raises:
            InputError: An unusable query, weight, condition, ``k`` or ``lambda_b``.
        """
        if k < 1 or not 0 <= lambda_b <= 1:
            raise InputError(f"k={k}, lambda_b={lambda_b}: k is at least 1, lambda_b from 0 to 1.")
        problem = self.schema.query(query) if isinstance(query, str) else query
        shares = self.schema.weights(weights)
        check_where(where)
        scale = self._scale()
        if scale is None:
            return []
        units = self.schema.vectors([problem], query=True)[0]
        asked = units.copy()
        for facet, share in zip(self.schema.facets, shares, strict=True):
            asked[self.schema.slices[facet.name]] *= share
        factor, constant = scale.asked(lambda_b)
        vector = np.append(lambda_b * asked, factor).astype(np.float32)
        try:
            points = self._top(vector, constant, k, where)
        except NoCollectionError:
            return []
        return [self._hit(point, units, shares, constant) for point in points]

    def retain(self, case: Case) -> Retained:
        """Keep a solved case, once: Revise by the schema's ``verify``, then write where it is new.

        The id follows from tenant, schema, problem and solution, so that retaining a case twice
        writes it once. A near-duplicate has a near problem and the same solution, and is sought
        among cases of the same tenant only.
        """
        complete = self._completed(case)
        if self.schema.verify is not None and (reason := self.schema.verify(complete)):
            return Retained(complete.id, "refused", reason)
        if known := self.get(complete.id):
            same = (known[0].quality, known[0].result) == (complete.quality, complete.result)
            if same:
                return Retained(complete.id, "unchanged")
            self.add([replace(complete, created=known[0].created)])
            return Retained(complete.id, "updated")
        if twin := self._twin(complete):
            return Retained(twin.id, "duplicate")
        self.add([complete])
        return Retained(complete.id, "added")

    def delete(self, ids: str | Sequence[str]) -> None:
        """Remove cases; unknown ids are no error."""
        if wanted := _uuids(ids):
            with suppress(NoCollectionError):
                self.engine.delete(self.schema.name, wanted)

    def count(self, where: Where | None = None) -> int:
        """Count the cases that match."""
        try:
            return self.engine.count(self.schema.name, where)
        except NoCollectionError:
            return 0

    def clear(self) -> None:
        """Remove every case and the collection itself, its quality scale included."""
        self.engine.drop(self.schema.name)

    def close(self) -> None:
        """Release the location; another process may open it then. Closing twice is no error."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        connections.release(self._key, self._engine)

    def __enter__(self) -> CaseStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def engine(self) -> Engine:
        """The engine below, for what the store does not offer."""
        if self._closed:
            raise StoreError(
                f"The case store {self.schema.name!r} at {self.location} is closed. Open it anew."
            )
        return self._engine

    def _scale(self, *, fresh: bool = False) -> QualityScale | None:
        """Return how the collection stores quality; ``None`` where there is no collection."""
        kept = self.engine.layout(self.schema.name, fresh=fresh)
        return None if kept is None else scale_of(kept, self.schema, self.location)

    def _create(self, cases: Sequence[Case]) -> QualityScale:
        fitted = QualityScale.fit((case.quality for case in cases), self.schema.quality_range)
        layout = layout_of(self.schema, fitted)
        self.engine.create(self.schema.name, self.schema.dimension, layout)
        # Where another store was first, its scale counts.
        return self._scale() or fitted

    def _completed(self, case: Case) -> Case:
        name = self.schema.name
        if case.id and canonical_id(case.id) is None:
            raise InputError(
                f"A case has the id {case.id!r}. Ids are UUIDs; leave it empty to have one derived."
            )
        measured = replace(case, quality=finite(case.quality, self.schema.quality_range))
        made = Case.from_json("", json_plain(measured.to_json(), name))
        chosen = canonical_id(case.id) or case_id(made, name)
        return replace(made, id=chosen, created=made.created or now())

    def _twin(self, case: Case) -> Case | None:
        """Return a case of the same tenant with a near problem and the same solution."""
        tenant = case.metadata.get("tenant")
        # No condition finds the cases that have no tenant: those are told apart below.
        where = {"tenant": tenant} if isinstance(tenant, (str, int)) else None
        limit = 10
        while True:
            hits = self.search(case.problem, limit, where=where)
            near = [hit.case for hit in hits if hit.relevance >= self.schema.near]
            for other in near:
                if (other.metadata.get("tenant"), other.solution) == (tenant, case.solution):
                    return other
            if len(near) < limit:
                return None
            limit *= 4

    def _top(
        self, vector: NDArray[np.float32], constant: float, k: int, where: Where | None
    ) -> list[Point]:
        """Return the k best by rounded score, then id; fetch on while ties cross the cut."""

        def rank(point: Point) -> tuple[float, str]:
            return -round(point.score + constant, DECIMALS), point.id

        limit = k + 8
        while True:
            points = sorted(self.engine.search(self.schema.name, vector, limit, where), key=rank)
            if len(points) < limit or rank(points[k - 1])[0] < rank(points[-1])[0]:
                return points[:k]
            limit *= 2

    def _hit(
        self,
        point: Point,
        units: NDArray[np.float32],
        shares: NDArray[np.float64],
        constant: float,
    ) -> Hit:
        assert point.vector is not None
        parts = self.schema.slices
        scores = {name: float(point.vector[s] @ units[s]) for name, s in parts.items()}
        relevance = float(np.dot(shares, list(scores.values())))
        score = point.score + constant
        return Hit(_case(point), score, relevance, scores, point.vector[:-1])


def _case(point: Point) -> Case:
    return Case.from_json(point.id, point.payload)


def _uuids(ids: str | Sequence[str]) -> list[str]:
    """Return ids in their canonical spelling; what is no UUID is no case's id."""
    given = [ids] if isinstance(ids, str) else ids
    return [known for text in given if (known := canonical_id(text))]
