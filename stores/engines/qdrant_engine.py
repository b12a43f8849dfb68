"""A vector engine on a ``QdrantClient`` in local mode; the base class of a server's engine."""

# ruff: noqa: D102 - ``Engine`` documents the methods.

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from operator import methodcaller
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from casewright.errors import StoreError
from casewright.stores.engines.engine import LocalEngine, NoCollectionError, Point, Rankings, Where
from casewright.stores.engines.upload import Ids, Payloads, Vectors
from casewright.stores.where import qdrant_filter

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

#: Points per page when a collection is read.
PAGE_SIZE = 1000
#: Local mode's message for a missing collection.
MISSING = re.compile("Collection .* not found")
Answer = TypeVar("Answer")

# Local mode warns at 20,000 cases. Ignore this globally: catch_warnings is not thread-safe.
warnings.filterwarnings("ignore", "Local mode is not recommended", UserWarning)


class QdrantEngine(LocalEngine):
    """An engine on a ``QdrantClient`` in local mode; calls hold a lock for thread safety."""

    def __init__(self, client: QdrantClient, location: str) -> None:
        self._client, self._location = client, location
        self._lock: AbstractContextManager[Any] = threading.RLock()
        self.write_lock: AbstractContextManager[Any] = threading.RLock()
        self._layouts: dict[str, Mapping[str, Any]] = {}  # schemas as JSON, by collection

    def layout(self, collection: str, *, fresh: bool = False) -> Mapping[str, Any] | None:
        with self._lock:
            layout = None if fresh else self._layouts.get(collection)
            if layout is None:
                try:
                    info = self._read(lambda client: client.get_collection(collection))
                except NoCollectionError:
                    return None
                layout = (info.config.metadata or {}).get("casewright", {})
                self._layouts[collection] = layout
            return layout

    def create(self, collection: str, dimension: int, layout: Mapping[str, Any]) -> None:
        try:
            self._create(collection, dimension, {"casewright": dict(layout)})
        except StoreError:
            # Another store may have created the collection first.
            if self.layout(collection, fresh=True) is None:
                raise

    def upsert(self, collection: str, ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
        batch = self._batch(ids, vectors, payloads)
        self._write(lambda client: client.upsert(collection, points=batch, wait=True))

    def search(
        self, collection: str, vector: Vectors, limit: int, where: Where | None, *, exact: bool
    ) -> list[Point]:
        condition, params = self._filter(where), self._params(exact=exact)
        settings: Any = {"query": vector.tolist(), "limit": limit, "with_vectors": True}
        settings |= {"query_filter": condition, "search_params": params}
        answer = self._read(lambda client: client.query_points(collection, **settings))
        return [self._point(point, point.score) for point in answer.points]

    def rank(self, collection: str, vectors: Vectors, limit: int, where: Where | None) -> Rankings:
        from qdrant_client import models

        settings: Any = {"filter": self._filter(where), "params": self._params(exact=True)}
        queries = vectors.tolist()
        requests = [models.QueryRequest(query=query, limit=limit, **settings) for query in queries]
        answers = self._read(lambda client: client.query_batch_points(collection, requests))
        return [[(str(point.id), point.score) for point in answer.points] for answer in answers]

    def get(self, collection: str, ids: Sequence[str], *, vectors: bool = False) -> list[Point]:
        parts = {"with_payload": True, "with_vectors": vectors}
        records = self._read(lambda client: client.retrieve(collection, list(ids), **parts))
        return [self._point(record) for record in records]

    def scroll(self, collection: str, where: Where | None) -> list[Point]:
        condition, points = self._filter(where), list[Point]()
        offset: Any = None
        while True:
            request = methodcaller("scroll", collection, condition, limit=PAGE_SIZE, offset=offset)
            records, offset = self._read(request)
            points += map(self._point, records)
            if offset is None:
                return points

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        from qdrant_client import models

        selector = models.PointIdsList(points=list(ids))
        self._write(lambda client: client.delete(collection, points_selector=selector, wait=True))

    def drop(self, collection: str) -> None:
        with self._lock:
            self._layouts.pop(collection, None)
            self._write(lambda client: client.delete_collection(collection))

    def count(self, collection: str, where: Where | None) -> int:
        condition = self._filter(where)
        return self._read(lambda client: client.count(collection, condition, exact=True)).count

    def close(self) -> None:
        with self._lock:
            self._client.close()

    def _create(self, collection: str, dimension: int, metadata: dict[str, Any]) -> None:
        from qdrant_client import models

        vector = models.VectorParams(size=dimension, distance=models.Distance.DOT)
        settings: dict[str, Any] = {"vectors_config": vector, "metadata": metadata}
        self._write(lambda client: client.create_collection(collection, **settings))

    def _batch(self, ids: Ids, vectors: Vectors, payloads: Payloads) -> models.Batch:
        from qdrant_client import models

        stored_payloads = list(map(self._payload, payloads))
        return models.Batch(ids=list(ids), vectors=vectors.tolist(), payloads=stored_payloads)

    def _point(self, record: Any, score: float = 0.0) -> Point:
        vector = None if record.vector is None else np.asarray(record.vector, dtype=np.float32)
        return Point(str(record.id), self._read_payload(record.payload or {}), score, vector)

    # A server's engine replaces the methods below.
    @staticmethod
    def _payload(case: Mapping[str, Any]) -> dict[str, Any]:
        return dict(case)

    @staticmethod
    def _read_payload(payload: Mapping[str, Any]) -> Mapping[str, Any]:
        return payload

    def _params(self, *, exact: bool) -> models.SearchParams | None:
        """Return ``None``: local mode always searches exactly, and warns about parameters."""
        return None

    def _filter(self, where: Where | None) -> models.Filter | None:
        return qdrant_filter(where)

    def _read(self, request: Callable[[QdrantClient], Answer]) -> Answer:
        """Call the client, and convert the errors of local mode to store errors."""
        with self._lock:
            try:
                return request(self._client)
            except StoreError:
                raise
            except Exception as error:
                store = f"The store at {self._location}"
                if isinstance(error, ValueError) and MISSING.fullmatch(str(error)):
                    raise NoCollectionError(f"{store}: {error}.") from error
                reason = f"{type(error).__name__}: {str(error)[:200]}"
                raise StoreError(f"{store} failed: {reason}.") from error

    def _write(self, request: Callable[[QdrantClient], Answer]) -> Answer:
        return self._read(request)
