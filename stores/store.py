"""The case store: add, get, search, retain, delete, count over a vector engine."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError, SchemaMismatchError, StoreDamagedError
from casewright.stores import connections
from casewright.stores.case import Case, case_id, now
from casewright.stores.engine import Engine, Point, Where
from casewright.stores.facet import Components
from casewright.stores.progress import progress_bar
from casewright.stores.quality import QualityScale
from casewright.stores.schema import CaseSchema

#: Cases that are encoded together and written together.
BATCH = 256
#: Scores are compared to this many decimals, so that all engines order results alike.
DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Hit:
    """A case found by a search.

    Attributes:
        case: The case.
        score: ``lambda_b * relevance + (1 - lambda_b) * quality``.
        relevance: Sum over the facets of weight times cosine.
        facet_scores: The cosine of each facet, unweighted; 0 where a component is absent.
        vector: The facets' unit vectors, concatenated.
    """

    case: Case
    score: float
    relevance: float
    facet_scores: Mapping[str, float]
    vector: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Retained:
    """What became of a case that was to be retained.

    Attributes:
        id: The case's id, or for ``duplicate`` the id of its twin.
        outcome: ``added``; ``updated`` (same problem and solution, other quality or result);
            ``unchanged``; ``duplicate`` (a near problem with the same solution is there);
            ``refused`` (it did not pass the schema's ``verify``).
        reason: Why it was refused.
    """

    id: str
    outcome: Literal["added", "updated", "unchanged", "duplicate", "refused"]
    reason: str = ""


class CaseStore:
    """Cases of one schema in one place.

    Args:
        schema: What the cases have in common.
        location: ``":memory:"``, a folder, or the URL of a Qdrant server or cluster.
        api_key: For a server that asks for one.
        lock_seconds: How long to wait for a folder that another process holds.

    Raises:
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
    ) -> None:
        self.schema = schema
        self.location = str(location)
        self._lock = threading.Lock()
        self._key, self._engine = connections.acquire(
            location, api_key=api_key, lock_seconds=lock_seconds
        )
        try:
            self._scale = self._read_scale()
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
        if not complete:
            return []
        with self._lock:
            scale = self._scale or self._create(complete)
        label = f"Adding cases to {self.schema.name}"
        with progress_bar(label, len(complete), show=progress) as advance:
            for start in range(0, len(complete), BATCH):
                batch = complete[start : start + BATCH]
                facets = self.schema.vectors([case.problem for case in batch])
                quality = np.array([[scale.stored(case.quality)] for case in batch])
                self._engine.upsert(
                    self.schema.name,
                    [case.id for case in batch],
                    np.concatenate([facets, quality], axis=1).astype(np.float32),
                    [case.to_json() for case in batch],
                )
                advance(len(batch))
        return [case.id for case in complete]

    def get(self, ids: str | Sequence[str]) -> list[Case]:
        """Return the cases of these ids, in their order; unknown ids are left out."""
        wanted = [ids] if isinstance(ids, str) else list(ids)
        if self._scale is None:
            return []
        wanted = [text for text in wanted if _is_uuid(text)]
        found = {p.id: p for p in self._engine.get(self.schema.name, wanted)}
        return [self._case(found[i]) for i in map(_canonical, wanted) if i in found]

    def all(self, where: Where | None = None) -> list[Case]:
        """Return every case that matches, ordered by id."""
        if self._scale is None:
            return []
        points = self._engine.scroll(self.schema.name, where)
        return sorted((self._case(point) for point in points), key=lambda case: case.id)

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
            InputError: An unusable query, weight, ``k`` or ``lambda_b``.
        """
        if k < 1 or not 0 <= lambda_b <= 1:
            raise InputError(f"k={k}, lambda_b={lambda_b}: k is at least 1, lambda_b from 0 to 1.")
        problem = self.schema.query(query) if isinstance(query, str) else query
        shares = self.schema.weights(weights)
        if self._scale is None:
            return []
        units = self.schema.vectors([problem], query=True)[0]
        asked = units.copy()
        for facet, share in zip(self.schema.facets, shares, strict=True):
            asked[self.schema.slices[facet.name]] *= share
        factor, constant = self._scale.asked(lambda_b)
        vector = np.append(lambda_b * asked, factor).astype(np.float32)
        points = self._top(vector, k, where)
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
        tenant = complete.metadata.get("tenant")
        for hit in self.search(complete.problem, 10, where={"tenant": tenant} if tenant else None):
            same_tenant = hit.case.metadata.get("tenant") == tenant
            if hit.relevance < self.schema.near:
                break
            if same_tenant and hit.case.solution == complete.solution:
                return Retained(hit.case.id, "duplicate")
        self.add([complete])
        return Retained(complete.id, "added")

    def delete(self, ids: str | Sequence[str]) -> None:
        """Remove cases; unknown ids are no error."""
        if self._scale is not None:
            wanted = [ids] if isinstance(ids, str) else list(ids)
            self._engine.delete(self.schema.name, [text for text in wanted if _is_uuid(text)])

    def count(self, where: Where | None = None) -> int:
        """Count the cases that match."""
        return 0 if self._scale is None else self._engine.count(self.schema.name, where)

    def clear(self) -> None:
        """Remove every case and the collection itself, its quality scale included."""
        self._engine.drop(self.schema.name)
        self._scale = None

    def close(self) -> None:
        """Release the location; another process may open it then."""
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
        return self._engine

    def _read_scale(self) -> QualityScale | None:
        kept = self._engine.layout(self.schema.name)
        if kept is None:
            return None
        wanted = self.schema.layout()
        differing = [key for key in wanted if kept.get(key) != wanted[key]]
        if differing:
            told = "; ".join(
                f"{key} is {kept.get(key)} there, {wanted[key]} here" for key in differing
            )
            raise SchemaMismatchError(
                f"The collection {self.schema.name!r} at {self.location} was built with another "
                f"schema: {told}. Open it with the schema that built it, or build it anew in "
                "another place."
            )
        try:
            return QualityScale(**kept["quality"])
        except (KeyError, TypeError) as error:
            raise StoreDamagedError(
                f"The collection {self.schema.name!r} at {self.location} has lost its quality "
                "scale. Build it anew."
            ) from error

    def _create(self, cases: Sequence[Case]) -> QualityScale:
        scale: QualityScale = QualityScale.fit(
            (case.quality for case in cases), self.schema.quality_range
        )
        quality = {
            "low": scale.low,
            "high": scale.high,
            "mean": scale.mean,
            "spread": scale.spread,
        }
        layout = {**self.schema.layout(), "quality": quality}
        self._engine.create(self.schema.name, self.schema.dimension, layout)
        self._scale = scale
        return scale

    def _completed(self, case: Case) -> Case:
        derived = case_id(case, self.schema.name)
        if case.id and not _is_uuid(case.id):
            raise InputError(
                f"A case has the id {case.id!r}. Ids are UUIDs; leave it empty to have one derived."
            )
        try:
            json.dumps([dict(case.metadata), case.result])
        except (TypeError, ValueError) as error:
            raise InputError(
                f"Metadata or result of case {derived} is not JSON-plain: {error}."
            ) from error
        return replace(case, id=_canonical(case.id or derived), created=case.created or now())

    def _top(self, vector: NDArray[np.float32], k: int, where: Where | None) -> list[Point]:
        """Return the k best by rounded score, then id; fetch on while ties cross the cut."""
        limit = k + 8
        while True:
            points = self._engine.search(self.schema.name, vector, limit, where)
            points.sort(key=lambda point: (-round(point.score, DECIMALS), point.id))
            cut_in_ties = len(points) == limit and round(points[k - 1].score, DECIMALS) <= round(
                points[-1].score, DECIMALS
            )
            if not cut_in_ties:
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
        score = float(point.score) + constant
        return Hit(self._case(point), score, relevance, scores, point.vector[:-1])

    def _case(self, point: Point) -> Case:
        return Case.from_json(point.id, point.payload)


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except (ValueError, AttributeError):
        return False
    return True


def _canonical(text: str) -> str:
    return str(uuid.UUID(text))


def describe_hit(hit: Hit) -> dict[str, Any]:
    """Return a hit as JSON-plain data, its vector left out."""
    return {
        "id": hit.case.id,
        "score": hit.score,
        "relevance": hit.relevance,
        "facet_scores": dict(hit.facet_scores),
        "case": hit.case.to_json(),
    }
