"""Qdrant behind the engine interface: in memory, in a folder, or a server's URL."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from casewright.errors import (
    InputError,
    StoreDamagedError,
    StoreError,
    StoreLockedError,
    StoreUnavailableError,
)
from casewright.stores.engine import Point, Where

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

#: Points a page when a whole collection is read.
PAGE = 1000
Answer = TypeVar("Answer")


class QdrantEngine:
    """An engine over one ``QdrantClient``.

    Qdrant's local mode is not thread-safe, so every call holds one lock; a server's client is, but
    a lock around a blocking call on one connection costs nothing there.
    """

    def __init__(self, client: QdrantClient, where_it_is: str) -> None:
        from qdrant_client.local.qdrant_local import QdrantLocal

        self._client = client
        self._name = where_it_is
        self._local = isinstance(client._client, QdrantLocal)
        self._lock = threading.RLock()

    @classmethod
    def open(
        cls,
        location: str | Path,
        *,
        api_key: str | None = None,
        timeout: int = 10,
        lock_seconds: float = 0.0,
    ) -> QdrantEngine:
        """Open ``":memory:"``, a folder, or the URL of a server or cluster.

        Args:
            location: Where the cases are.
            api_key: For a server that asks for one.
            timeout: Seconds for one request to a server.
            lock_seconds: How long to wait for a folder that another process holds.

        Raises:
            StoreLockedError: Another process holds the folder.
            StoreDamagedError: The folder's files cannot be read.
            StoreUnavailableError: The server does not answer.
        """
        from qdrant_client import QdrantClient

        if str(location) == ":memory:":
            return cls(QdrantClient(":memory:"), "memory")
        if str(location).startswith(("http://", "https://")):
            engine = cls(
                QdrantClient(
                    url=str(location), api_key=api_key, timeout=timeout, check_compatibility=False
                ),
                str(location),
            )
            engine._call(lambda client: client.get_collections())
            return engine
        return cls(_open_folder(Path(location), lock_seconds), str(location))

    def layout(self, collection: str) -> Mapping[str, Any] | None:
        """Return the layout kept in the collection's metadata; see ``Engine``."""
        if not self._call(lambda client: client.collection_exists(collection)):
            return None
        info = self._call(lambda client: client.get_collection(collection))
        kept: Mapping[str, Any] = (info.config.metadata or {}).get("casewright", {})
        return kept

    def create(self, collection: str, dimension: int, layout: Mapping[str, Any]) -> None:
        """Make a collection of one Dot vector; see ``Engine``."""
        from qdrant_client import models

        self._call(
            lambda client: client.create_collection(
                collection,
                vectors_config=models.VectorParams(size=dimension, distance=models.Distance.DOT),
                metadata={"casewright": dict(layout)},
            )
        )

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
        found = self._call(
            lambda client: client.query_points(
                collection,
                query=vector.tolist(),
                limit=limit,
                query_filter=_filter(where),
                search_params=exact,
                with_payload=True,
                with_vectors=True,
            )
        )
        return [
            Point(str(p.id), p.payload or {}, p.score, np.asarray(p.vector, dtype=np.float32))
            for p in found.points
        ]

    def get(self, collection: str, ids: Sequence[str]) -> list[Point]:
        """Return the points that exist; see ``Engine``."""
        found = self._call(lambda client: client.retrieve(collection, list(ids), with_payload=True))
        return [Point(str(record.id), record.payload or {}) for record in found]

    def scroll(self, collection: str, where: Where | None) -> list[Point]:
        """Return every point that matches; see ``Engine``."""
        points: list[Point] = []
        offset: Any = None
        selected = _filter(where)
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
        self._call(lambda client: client.delete_collection(collection))

    def count(self, collection: str, where: Where | None) -> int:
        """Count points exactly; see ``Engine``."""
        counted = self._call(
            lambda client: client.count(collection, count_filter=_filter(where), exact=True)
        )
        return int(counted.count)

    def close(self) -> None:
        """Close the client; see ``Engine``."""
        with self._lock:
            self._client.close()

    def _call(self, request: Callable[[QdrantClient], Answer]) -> Answer:
        with self._lock, _translated(self._name, local=self._local):
            return request(self._client)


def _filter(where: Where | None) -> models.Filter | None:
    from qdrant_client import models

    if not where:
        return None
    conditions: list[models.Condition] = []
    for name, value in where.items():
        match: Any
        if isinstance(value, (str, int, bool)):
            match = models.MatchValue(value=value)
        else:
            match = models.MatchAny(any=list(value))  # type: ignore[arg-type]
        conditions.append(models.FieldCondition(key=f"metadata.{name}", match=match))
    return models.Filter(must=conditions)


def _open_folder(folder: Path, lock_seconds: float) -> QdrantClient:
    from qdrant_client import QdrantClient

    deadline = time.monotonic() + lock_seconds
    while True:
        try:
            if folder.exists() and not folder.is_dir():
                raise InputError(f"{folder} is a file. Give a folder for the case store.")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                return QdrantClient(path=str(folder))
        except InputError:
            raise
        except PermissionError as error:
            raise StoreError(
                f"The store's folder {folder} cannot be used: {error.strerror}. "
                "Choose a folder that you may write to."
            ) from error
        except RuntimeError as error:
            if "already accessed" not in str(error):
                raise _damaged(folder, error) from error
            if time.monotonic() >= deadline:
                raise StoreLockedError(
                    f"Another process holds the store's folder {folder}. Wait until it ends, use "
                    "another folder, or let both use a Qdrant server by its URL."
                ) from error
            time.sleep(0.05)
        # Local mode unpickles what it stored: a damaged file can raise anything.
        except Exception as error:
            raise _damaged(folder, error) from error


def _damaged(folder: Path, error: Exception) -> StoreDamagedError:
    return StoreDamagedError(
        f"The store's folder {folder} is damaged: {type(error).__name__}: {str(error)[:200]}. "
        "Restore it from a copy, or delete the folder and build the store again."
    )


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
        raise StoreError(
            f"The store at {name} failed: {type(error).__name__}: {str(error)[:200]}."
        ) from error
