"""Qdrant Edge behind the engine interface: the Rust engine in this process, over a folder."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from casewright.errors import InputError, StoreError
from casewright.stores.engines.edge_child import examined
from casewright.stores.engines.edge_payload import payload
from casewright.stores.engines.edge_shard import ShardFolder, scrolled, uuids
from casewright.stores.engines.engine import (
    InProcess,
    NoCollectionError,
    Point,
    Ranked,
    RecommendStrategy,
    Where,
)
from casewright.stores.engines.examples import check_examples
from casewright.stores.engines.folder import usable
from casewright.stores.engines.upload import Ids, Payloads, Vectors
from casewright.stores.room import check_room
from casewright.stores.where import edge_filter

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard

#: The most that a search asks for.
LIMIT = 1 << 31
#: Bytes that Edge writes for each of a case: to its log, its text and its vector; and more.
WRITTEN = 4


class EdgeEngine(InProcess):
    """An engine over a folder: a shard a collection, loaded at its first use.

    A payload is kept as ``edge_payload.payload`` makes it. Shards are thread-safe; the lock is for
    loading and closing them, and for counting who uses one.
    """

    def __init__(self, folder: Path, folder_lock: IO[str]) -> None:
        self._folder = folder
        self._folder_lock = folder_lock
        self.writing = threading.RLock()
        self._lock = threading.Condition()
        self._users = 0
        self._shards: dict[str, EdgeShard] = {}
        self._remembered: dict[str, tuple[int, Mapping[str, Any]]] = {}
        self._checked: set[str] = set()
        self._closed = False

    def layout(self, collection: str, *, fresh: bool = False) -> Mapping[str, Any] | None:
        """Return the layout kept beside the shard, which is not loaded; see ``Engine``."""
        kept = self._kept(collection, fresh=fresh)
        return kept and kept[1]

    def create(self, collection: str, dimension: int, layout: Mapping[str, Any]) -> None:
        """Make a shard of one Dot vector; see ``Engine``."""
        with self._opened():
            disk = ShardFolder(self._folder, collection)
            if not disk.path.exists():
                check_room(self._folder)
                disk.make(dimension, layout)

    def upsert(self, collection: str, ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
        """Write a batch of points, all or none; see ``Engine``.

        Raises:
            InputError: An id is no UUID, or a vector is not finite, or of another length than the
                collection's.
            DiskFullError: There is no room for it.
        """
        from qdrant_edge import Point as EdgePoint
        from qdrant_edge import UpdateOperation

        rows = self._usable(collection, vectors, (len(ids),))
        known = uuids(ids)
        kept = [payload(p, str(i), row) for i, row, p in zip(known, rows, payloads, strict=True)]
        points = [EdgePoint(i, row, p) for i, row, p in zip(known, rows, kept, strict=True)]
        size = rows.nbytes + sum(len(one["json"].encode()) for one in kept)
        check_room(self._folder, WRITTEN * size)
        with self._writing(collection, 0, len(ids)) as shard:
            shard.update(UpdateOperation.upsert_points(points))

    def search(
        self,
        collection: str,
        vector: Vectors,
        limit: int,
        where: Where | None,
        *,
        exact: bool = True,
    ) -> list[Point]:
        """Search exactly by dot product; see ``Engine``.

        Raises:
            InputError: The vector is not finite, or of another length than the collection's.
        """
        query = self._nearest(self._usable(collection, vector, ()).tolist())
        request = self._request(query, limit, where, with_payload=True, with_vector=True)
        with self._using(collection) as (shard, disk):
            return [
                disk.point(found, found.score, np.asarray(found.vector, dtype=np.float32))
                for found in shard.query(request)
            ]

    def rank(
        self, collection: str, vectors: Vectors, limit: int, where: Where | None
    ) -> list[list[Ranked]]:
        """Search for several vectors in one pass; see ``Engine``."""
        from qdrant_edge import QueryBatchRequest

        rows = self._usable(collection, vectors, (len(vectors),)).tolist()
        requests = [self._request(self._nearest(row), limit, where) for row in rows]
        with self._using(collection) as (shard, _):
            answers = shard.query_batch(QueryBatchRequest(requests))
            return [[(str(found.id), found.score) for found in answer] for answer in answers]

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
        """Search by positive and negative examples; see ``Engine``.

        Raises:
            InputError: As ``Engine`` says, or the examples are of another length than the
                collection's vectors.
        """
        from qdrant_edge import Query, RecommendQuery

        check_examples(positive, negative, strategy)
        near = self._usable(collection, positive, (len(positive),)).tolist()
        far = self._usable(collection, negative, (len(negative),)).tolist()
        best = strategy == "best_score"
        query = Query.RecommendBestScore if best else Query.RecommendSumScores
        request = self._request(query(RecommendQuery(near, far)), limit, where)
        with self._using(collection) as (shard, _):
            return [(str(found.id), found.score) for found in shard.query(request)]

    def get(self, collection: str, ids: Sequence[str], *, vectors: bool = False) -> list[Point]:
        """Return the points that exist; see ``Engine``."""
        with self._using(collection) as (shard, disk):
            found = shard.retrieve(uuids(ids), True, vectors)
            return [
                disk.point(one, vector=np.asarray(one.vector, np.float32) if vectors else None)
                for one in found
            ]

    def scroll(self, collection: str, where: Where | None) -> list[Point]:
        """Return every point that matches; see ``Engine``."""
        selected = edge_filter(where)
        with self._using(collection) as (shard, disk):
            return [disk.point(record) for record in scrolled(shard, filter=selected)]

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Remove points; see ``Engine``."""
        from qdrant_edge import UpdateOperation

        with self._writing(collection, len(ids), 0) as shard:
            shard.update(UpdateOperation.delete_points(uuids(ids)))

    def drop(self, collection: str) -> None:
        """Remove a collection, damaged or not; see ``Engine``."""
        with self._opened():
            disk = ShardFolder(self._folder, collection)
            self._remembered.pop(collection, None)
            self._checked.discard(collection)
            if (shard := self._shards.pop(collection, None)) is not None:
                disk.close(shard)
            disk.remove()

    def count(self, collection: str, where: Where | None) -> int:
        """Count points exactly; see ``Engine``."""
        from qdrant_edge import CountRequest

        selected = edge_filter(where)
        with self._using(collection) as (shard, _):
            return shard.count(CountRequest(exact=True, filter=selected))

    def close(self) -> None:
        """Close the shards, then the folder's lock; see ``Engine``."""
        with self._lock:
            self._closed = True
            # A daemon thread that Python ends, at its exit, inside of Rust takes the process down.
            self._lock.wait_for(lambda: not self._users)
            while self._shards:
                collection, shard = self._shards.popitem()
                ShardFolder(self._folder, collection).close(shard)
            self._folder_lock.close()

    @staticmethod
    def _nearest(vector: Any) -> Any:
        from qdrant_edge import Query

        return Query.Nearest(vector)

    @staticmethod
    def _request(query: Any, limit: int, where: Where | None, **shown: Any) -> Any:
        """Return the request of an exact query."""
        from qdrant_edge import QueryRequest, SearchParams

        return QueryRequest(
            query=query,
            limit=min(limit, LIMIT),
            filter=edge_filter(where),
            params=SearchParams(exact=True),
            **shown,
        )

    @contextmanager
    def _opened(self) -> Iterator[None]:
        with self._lock, usable(self._folder):
            if self._closed:
                raise StoreError(f"The store at {self._folder} is closed. Open it anew.")
            yield

    def _kept(
        self, collection: str, *, fresh: bool = False
    ) -> tuple[int, Mapping[str, Any]] | None:
        """Return dimension and layout; ``None`` where there is no such collection."""
        with self._opened():
            if fresh or collection not in self._remembered:
                self._remembered.pop(collection, None)
                disk = ShardFolder(self._folder, collection)
                if not disk.path.exists():
                    return None
                self._check(disk)
                self._remembered[collection] = disk.remembered()
            return self._remembered[collection]

    def _check(self, disk: ShardFolder) -> None:
        """Find damage, once, in a shard that is not loaded."""
        if disk.collection in self._checked:
            return
        if not disk.check():
            # What a killed process left may end the one that loads it.
            examined(disk, self._folder_lock)
        self._checked.add(disk.collection)

    @contextmanager
    def _writing(self, collection: str, fewer: int, more: int) -> Iterator[EdgeShard]:
        """Give a shard for a write that leaves at most so many fewer, or more, cases."""
        using = self._using(collection, reading=False)
        with self.writing, using as (shard, disk), usable(self._folder):
            there = shard.info().points_count
            disk.count.write(there - fewer, there + more)
            yield shard
            there = shard.info().points_count
            disk.count.write(there, there)

    @contextmanager
    def _using(
        self, collection: str, *, reading: bool = True
    ) -> Iterator[tuple[EdgeShard, ShardFolder]]:
        """Give a collection's shard, loaded where it is not yet, for one call."""
        disk = ShardFolder(self._folder, collection)
        with self._opened():
            if collection not in self._shards:
                if not disk.path.exists():
                    raise self._missing(collection)
                self._check(disk)
                self._shards[collection] = disk.load()
            shard = self._shards[collection]
            self._users += 1
        try:
            with disk.translated(reading=reading):
                yield shard, disk
        except StoreError as error:
            with self._opened():
                # Another thread dropped it meanwhile.
                if self._shards.get(collection) is not shard:
                    raise self._missing(collection) from error
            raise
        finally:
            with self._lock:
                self._users -= 1
                self._lock.notify_all()

    def _usable(self, collection: str, vectors: Vectors, leading: tuple[int, ...]) -> Vectors:
        """Return vectors as Edge takes them; it accepts NaN, and finds nothing sensible then."""
        kept = self._kept(collection)
        if kept is None:
            raise self._missing(collection)
        wanted = (*leading, kept[0])
        if vectors.shape != wanted or not np.isfinite(vectors).all():
            raise InputError(
                f"The collection {collection!r} at {self._folder} takes finite vectors of shape "
                f"{wanted}; given were some of shape {vectors.shape}, of which "
                f"{int((~np.isfinite(vectors)).sum())} numbers are NaN or infinite. "
                "Check the encoder."
            )
        return np.ascontiguousarray(vectors, dtype=np.float32)

    def _missing(self, collection: str) -> NoCollectionError:
        return NoCollectionError(f"The store at {self._folder} has no collection {collection!r}.")
