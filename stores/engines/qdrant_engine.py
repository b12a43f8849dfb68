"""qdrant-client's local mode behind the engine interface: in memory or in a folder."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import IO, TYPE_CHECKING, Any, TypeVar

import numpy as np

from casewright.errors import StoreError
from casewright.stores.engines.engine import (
    InProcess,
    NoCollectionError,
    Point,
    Ranked,
    RecommendStrategy,
    Where,
)
from casewright.stores.engines.examples import check_examples
from casewright.stores.engines.local_points import points_only
from casewright.stores.engines.upload import Ids, Payloads, Vectors
from casewright.stores.where import qdrant_filter

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

#: Points a page when a whole collection is read.
PAGE = 1000
Answer = TypeVar("Answer")


class QdrantEngine(InProcess):
    """An engine over one ``QdrantClient`` in local mode.

    Local mode is not thread-safe, so every call holds one lock.

    Args:
        client: Of local mode.
        where_it_is: What messages call the place.
        folder_lock: What keeps others out of a folder.
    """

    def __init__(
        self, client: QdrantClient, where_it_is: str, folder_lock: IO[str] | None = None
    ) -> None:
        self._client = client
        self._name = where_it_is
        self._lock: AbstractContextManager[Any] = threading.RLock()
        self._writing: AbstractContextManager[Any] = threading.RLock()
        self._folder_lock = folder_lock
        self._layouts: dict[str, Mapping[str, Any]] = {}

    @classmethod
    def in_memory(cls) -> QdrantEngine:
        """Open a place that is nobody else's, and gone when it is closed."""
        from qdrant_client import QdrantClient

        return cls(QdrantClient(":memory:"), "memory")

    @property
    def writing(self) -> AbstractContextManager[Any]:
        """A lock for whoever writes what depends on what they have read; see ``Engine``."""
        return self._writing

    def layout(self, collection: str, *, fresh: bool = False) -> Mapping[str, Any] | None:
        """Return the layout kept in the collection's metadata; see ``Engine``."""
        with self._lock:
            kept = None if fresh else self._layouts.get(collection)
            if kept is None:
                try:
                    info = self._read(lambda client: client.get_collection(collection))
                except NoCollectionError:
                    return None
                kept = (info.config.metadata or {}).get("casewright", {})
                self._layouts[collection] = kept
            return kept

    def create(self, collection: str, dimension: int, layout: Mapping[str, Any]) -> None:
        """Make a collection of one Dot vector; see ``Engine``."""
        try:
            self._create(collection, dimension, {"casewright": dict(layout)})
        except StoreError:
            # Another store may have been first.
            if self.layout(collection, fresh=True) is None:
                raise

    def upsert(self, collection: str, ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
        """Write a batch of points; see ``Engine``."""
        batch = self._batch(ids, vectors, payloads)
        self._write(lambda client: client.upsert(collection, points=batch, wait=True))

    def search(
        self,
        collection: str,
        vector: Vectors,
        limit: int,
        where: Where | None,
        *,
        exact: bool = True,
    ) -> list[Point]:
        """Search by dot product; see ``Engine``."""
        points = self._queried(
            collection, vector.tolist(), limit, where, exact=exact, with_vectors=True
        )
        return [self._point(point, point.score) for point in points]

    def rank(
        self, collection: str, vectors: Vectors, limit: int, where: Where | None
    ) -> list[list[Ranked]]:
        """Search for several vectors in one request, always exactly; see ``Engine``."""
        from qdrant_client import models

        selected, params = self._filter(where), self._params(exact=True)
        requests = [
            models.QueryRequest(query=vector.tolist(), limit=limit, filter=selected, params=params)
            for vector in vectors
        ]
        answers = self._read(lambda client: client.query_batch_points(collection, requests))
        return [[(str(p.id), p.score) for p in answer.points] for answer in answers]

    def recommend(
        self,
        collection: str,
        positive: Vectors,
        negative: Vectors,
        limit: int,
        where: Where | None,
        *,
        strategy: RecommendStrategy = "best_score",
    ) -> list[Ranked]:
        """Search by positive and negative examples, always exactly; see ``Engine``."""
        from qdrant_client import models

        check_examples(positive, negative, strategy)
        examples = models.RecommendInput(
            positive=positive.tolist(),
            negative=negative.tolist(),
            strategy=models.RecommendStrategy(strategy),
        )
        query = models.RecommendQuery(recommend=examples)
        points = self._queried(collection, query, limit, where, with_payload=False)
        return [(str(point.id), point.score) for point in points]

    def get(self, collection: str, ids: Sequence[str], *, vectors: bool = False) -> list[Point]:
        """Return the points that exist; see ``Engine``."""
        found = self._read(
            lambda client: client.retrieve(
                collection, list(ids), with_payload=True, with_vectors=vectors
            )
        )
        return [self._point(record) for record in found]

    def scroll(self, collection: str, where: Where | None) -> list[Point]:
        """Return every point that matches; see ``Engine``."""
        return [self._point(record) for record in self._scrolled(collection, where)]

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Remove points; see ``Engine``."""
        from qdrant_client import models

        selector = models.PointIdsList(points=list(ids))
        self._write(lambda client: client.delete(collection, points_selector=selector, wait=True))

    def drop(self, collection: str) -> None:
        """Remove a collection; see ``Engine``."""
        with self._lock:
            self._layouts.pop(collection, None)
            self._write(lambda client: client.delete_collection(collection))

    def count(self, collection: str, where: Where | None) -> int:
        """Count points exactly; see ``Engine``."""
        selected = self._filter(where)
        counted = self._read(
            lambda client: client.count(collection, count_filter=selected, exact=True)
        )
        return int(counted.count)

    def close(self) -> None:
        """Close the client; see ``Engine``."""
        with self._lock:
            self._client.close()
            if self._folder_lock is not None:
                self._folder_lock.close()

    def _create(self, collection: str, dimension: int, metadata: dict[str, Any]) -> None:
        from qdrant_client import models

        vector = models.VectorParams(size=dimension, distance=models.Distance.DOT)
        # It reads what lies at the new collection's place already.
        with points_only():
            self._write(
                lambda client: client.create_collection(
                    collection, vectors_config=vector, metadata=metadata
                )
            )

    def _queried(
        self,
        collection: str,
        query: Any,
        limit: int,
        where: Where | None,
        *,
        exact: bool = True,
        **shown: Any,
    ) -> Sequence[models.ScoredPoint]:
        """Return the points that a query finds, best first."""
        params, selected = self._params(exact=exact), self._filter(where)
        return self._read(
            lambda client: client.query_points(
                collection,
                query=query,
                limit=limit,
                query_filter=selected,
                search_params=params,
                **shown,
            )
        ).points

    def _scrolled(
        self, collection: str, where: Where | None = None, *, vectors: bool = False
    ) -> Iterator[Any]:
        """Yield the records that match, read page by page."""
        offset: Any = None
        selected = self._filter(where)
        while True:

            def page(client: QdrantClient, at: Any = offset) -> tuple[list[Any], Any]:
                return client.scroll(
                    collection, selected, limit=PAGE, offset=at, with_vectors=vectors
                )

            records, offset = self._read(page)
            yield from records
            if offset is None:
                return

    def _batch(self, ids: Ids, vectors: Vectors, payloads: Payloads) -> models.Batch:
        from qdrant_client import models

        return models.Batch(
            ids=list(ids), vectors=vectors.tolist(), payloads=[self._stored(p) for p in payloads]
        )

    def _point(self, record: Any, score: float = 0.0) -> Point:
        vector = None if record.vector is None else np.asarray(record.vector, dtype=np.float32)
        return Point(str(record.id), self._read_payload(record.payload or {}), score, vector)

    def _stored(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is stored of a payload, and by ``_read_payload`` is read again."""
        return dict(payload)

    def _read_payload(self, stored: Mapping[str, Any]) -> Mapping[str, Any]:
        return stored

    def _params(self, *, exact: bool) -> models.SearchParams | None:
        """Return how to search: local mode is always exact, and warns of being told so."""
        return None

    def _filter(self, where: Where | None) -> models.Filter | None:
        return qdrant_filter(where)

    def _read(self, request: Callable[[QdrantClient], Answer]) -> Answer:
        return self._locally(request)

    def _write(self, request: Callable[[QdrantClient], Answer]) -> Answer:
        return self._locally(request)

    def _locally(self, request: Callable[[QdrantClient], Answer]) -> Answer:
        """Call local mode, and raise its errors as store errors."""
        with self._lock:
            try:
                return request(self._client)
            except StoreError:
                raise
            except Exception as error:
                missing = isinstance(error, ValueError) and re.fullmatch(
                    "Collection .* not found", str(error)
                )
                if missing:
                    raise NoCollectionError(f"The store at {self._name}: {error}.") from error
                raise StoreError(
                    f"The store at {self._name} failed: {type(error).__name__}: {str(error)[:200]}."
                ) from error
