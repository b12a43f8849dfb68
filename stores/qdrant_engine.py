"""qdrant-client behind the engine interface: in memory, in a folder, or a server's URL."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import IO, TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from casewright.errors import StoreError, StoreUnavailableError
from casewright.stores.engine import NoCollectionError, Point, Ranked, Where
from casewright.stores.where import qdrant_filter

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

#: Points a page when a whole collection is read.
PAGE = 1000
Answer = TypeVar("Answer")


class QdrantEngine:
    """An engine over one ``QdrantClient``.

    Qdrant's local mode is not thread-safe, so every call holds one lock there; a server's client
    is, and a slow answer keeps nobody else waiting.
    """

    def __init__(
        self, client: QdrantClient, where_it_is: str, folder_lock: IO[str] | None = None
    ) -> None:
        from qdrant_client.local.qdrant_local import QdrantLocal

        self._client = client
        self._name = where_it_is
        self._local = isinstance(client._client, QdrantLocal)
        self._lock: AbstractContextManager[Any] = (
            threading.RLock() if self._local else nullcontext()
        )
        self.writing = threading.RLock()
        self._folder_lock = folder_lock
        self._layouts: dict[str, Mapping[str, Any]] = {}

    @classmethod
    def open(
        cls,
        location: str,
        *,
        api_key: str | None = None,
        timeout: int = 10,
    ) -> QdrantEngine:
        """Open ``":memory:"``, or the URL of a server or cluster; for folders, see ``open_folder``.

        Args:
            location: Where the cases are.
            api_key: For a server that asks for one.
            timeout: Seconds for one request to a server.

        Raises:
            StoreUnavailableError: The server does not answer.
        """
        from qdrant_client import QdrantClient

        if location == ":memory:":
            return cls(QdrantClient(":memory:"), "memory")
        client = QdrantClient(
            url=location, api_key=api_key, timeout=timeout, check_compatibility=False
        )
        engine = cls(client, location)
        engine._call(lambda client: client.get_collections())
        return engine

    def layout(self, collection: str, *, fresh: bool = False) -> Mapping[str, Any] | None:
        """Return the layout kept in the collection's metadata; see ``Engine``."""
        with self._lock:
            kept = None if fresh else self._layouts.get(collection)
            if kept is None:
                try:
                    info = self._call(lambda client: client.get_collection(collection))
                except NoCollectionError:
                    return None
                kept = (info.config.metadata or {}).get("casewright", {})
                self._layouts[collection] = kept
            return kept

    def create(self, collection: str, dimension: int, layout: Mapping[str, Any]) -> None:
        """Make a collection of one Dot vector; see ``Engine``."""
        from qdrant_client import models

        try:
            self._call(
                lambda client: client.create_collection(
                    collection,
                    vectors_config=models.VectorParams(
                        size=dimension, distance=models.Distance.DOT
                    ),
                    metadata={"casewright": dict(layout)},
                )
            )
        except StoreError:
            # Another store may have been first.
            if self.layout(collection, fresh=True) is None:
                raise

    def upsert(
        self,
        collection: str,
        ids: Sequence[str],
        vectors: NDArray[np.float32],
        payloads: Sequence[Mapping[str, Any]],
    ) -> None:
        """Write a batch of points; see ``Engine``."""
        from qdrant_client import models

        batch = models.Batch(
            ids=list(ids), vectors=vectors.tolist(), payloads=[dict(p) for p in payloads]
        )
        self._call(lambda client: client.upsert(collection, points=batch, wait=True))

    def search(
        self, collection: str, vector: NDArray[np.float32], limit: int, where: Where | None
    ) -> list[Point]:
        """Search exactly by dot product; see ``Engine``."""
        from qdrant_client import models

        # Local mode is always exact and warns about the parameter.
        exact = None if self._local else models.SearchParams(exact=True)
        selected = qdrant_filter(where)
        found = self._call(
            lambda client: client.query_points(
                collection,
                query=vector.tolist(),
                limit=limit,
                query_filter=selected,
                search_params=exact,
                with_payload=True,
                with_vectors=True,
            )
        )
        return [
            Point(str(p.id), p.payload or {}, p.score, np.asarray(p.vector, dtype=np.float32))
            for p in found.points
        ]

    def rank(
        self, collection: str, vectors: NDArray[np.float32], limit: int, where: Where | None
    ) -> list[list[Ranked]]:
        """Search for several vectors in one request; see ``Engine``."""
        from qdrant_client import models

        requests = [
            models.QueryRequest(
                query=vector.tolist(),
                limit=limit,
                filter=qdrant_filter(where),
                params=None if self._local else models.SearchParams(exact=True),
            )
            for vector in vectors
        ]
        answers = self._call(lambda client: client.query_batch_points(collection, requests))
        return [[(str(p.id), p.score) for p in answer.points] for answer in answers]

    def get(self, collection: str, ids: Sequence[str], *, vectors: bool = False) -> list[Point]:
        """Return the points that exist; see ``Engine``."""
        found = self._call(
            lambda client: client.retrieve(
                collection, list(ids), with_payload=True, with_vectors=vectors
            )
        )
        return [
            Point(
                str(record.id),
                record.payload or {},
                vector=np.asarray(record.vector, dtype=np.float32) if vectors else None,
            )
            for record in found
        ]

    def scroll(self, collection: str, where: Where | None) -> list[Point]:
        """Return every point that matches; see ``Engine``."""
        points: list[Point] = []
        offset: Any = None
        selected = qdrant_filter(where)
        while True:

            def page(client: QdrantClient, at: Any = offset) -> tuple[list[Any], Any]:
                return client.scroll(collection, scroll_filter=selected, limit=PAGE, offset=at)

            records, offset = self._call(page)
            points += [Point(str(record.id), record.payload or {}) for record in records]
            if offset is None:
                return points

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Remove points; see ``Engine``."""
        from qdrant_client import models

        selector = models.PointIdsList(points=list(ids))
        self._call(lambda client: client.delete(collection, points_selector=selector, wait=True))

    def drop(self, collection: str) -> None:
        """Remove a collection; see ``Engine``."""
        with self._lock:
            self._layouts.pop(collection, None)
            self._call(lambda client: client.delete_collection(collection))

    def count(self, collection: str, where: Where | None) -> int:
        """Count points exactly; see ``Engine``."""
        selected = qdrant_filter(where)
        counted = self._call(
            lambda client: client.count(collection, count_filter=selected, exact=True)
        )
        return int(counted.count)

    def close(self) -> None:
        """Close the client; see ``Engine``."""
        with self._lock:
            self._client.close()
            if self._folder_lock is not None:
                self._folder_lock.close()

    def _call(self, request: Callable[[QdrantClient], Answer]) -> Answer:
        with self._lock, _translated(self._name, local=self._local):
            return request(self._client)


@contextmanager
def _translated(name: str, *, local: bool) -> Iterator[None]:
    """Raise the client's errors as store errors."""
    from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

    try:
        yield
    except StoreError:
        raise
    except UnexpectedResponse as error:
        reason = (error.content or b"").decode("utf-8", "replace")[:200]
        if error.status_code == 404 and "doesn't exist" in reason:
            raise NoCollectionError(f"The Qdrant server {name}: {reason}") from error
        raise StoreUnavailableError(
            f"The Qdrant server {name} refused: {error.status_code} {reason}. "
            "Check the URL, the API key and the server's log."
        ) from error
    except ApiException as error:
        raise StoreUnavailableError(
            f"The Qdrant server {name} does not answer: {error}. "
            "Check that it runs and that the URL is right."
        ) from error
    except Exception as error:
        if not local:
            raise StoreUnavailableError(
                f"The Qdrant server {name} answered with what is no Qdrant answer: "
                f"{type(error).__name__}: {str(error)[:200]}. Check the URL."
            ) from error
        if isinstance(error, ValueError) and re.fullmatch("Collection .* not found", str(error)):
            raise NoCollectionError(f"The store at {name}: {error}.") from error
        raise StoreError(
            f"The store at {name} failed: {type(error).__name__}: {str(error)[:200]}."
        ) from error
