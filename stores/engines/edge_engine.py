"""The engine of a store in a folder: Qdrant Edge, a Rust library that runs in this process."""

# ruff: noqa: D102 - ``Engine`` documents the methods.

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isclose
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from casewright.errors import InputError, StoreError
from casewright.stores.engines.edge_child import examine
from casewright.stores.engines.edge_shard import ShardFolder, scroll_records, uuids
from casewright.stores.engines.engine import LocalEngine, NoCollectionError, Point, Rankings, Where
from casewright.stores.engines.folder import folder_errors
from casewright.stores.engines.payload import edge_payload
from casewright.stores.engines.upload import Ids, Payloads, Vectors
from casewright.stores.room import check_room
from casewright.stores.where import edge_filter

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard

#: Maximum number of results that Edge is asked for.
MAX_LIMIT = 1 << 31
#: Maximum number of cached cases of a collection.
MAX_CACHED_CASES = 4096
#: Maximum number of characters in the JSON of a cached case.
MAX_CACHED_CHARACTERS = 4096
#: Maximum difference, absolute or relative, of scores that count as equal.
TOLERANCE = 1e-4
#: Maximum number of bytes that Edge writes (log, text and vector) per byte of a case.
WRITE_FACTOR = 4


class EdgeEngine(LocalEngine):
    """An engine over a folder: each collection has a shard, which is loaded at its first use.

    Shards are thread-safe; ``_lock`` is for loading, closing and the number of running calls.
    """

    def __init__(self, folder: Path, folder_lock: IO[str]) -> None:
        self._store, self._folder_lock = folder, folder_lock
        self.write_lock, self._lock = threading.RLock(), threading.Condition()
        self._running_calls, self._closed = 0, False
        self._shards: dict[str, EdgeShard] = {}
        # By collection: dimension and layout.
        self._layouts: dict[str, tuple[int, Mapping[str, Any]]] = {}
        # Collections whose files were checked.
        self._checked: set[str] = set()
        # By collection and case id: the case's JSON text and its vector.
        self._caches: dict[str, dict[str, tuple[str, Vectors]]] = {}

    def layout(self, collection: str, *, fresh: bool = False) -> Mapping[str, Any] | None:
        entry = self._layout(collection, fresh=fresh)
        return entry and entry[1]

    def create(self, collection: str, dimension: int, layout: Mapping[str, Any]) -> None:
        with self._locked():
            folder = ShardFolder(self._store, collection)
            if not folder.path.exists():
                check_room(self._store)
                folder.make(dimension, layout)

    def upsert(self, collection: str, ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
        """Write all points or none; raise ``InputError`` for an invalid id or vector."""
        from qdrant_edge import Point as EdgePoint
        from qdrant_edge import UpdateOperation

        rows = self._validated(collection, vectors, (len(ids),))
        keys = uuids(ids)
        edge_payloads = [
            edge_payload(p, str(i), row) for i, row, p in zip(keys, rows, payloads, strict=True)
        ]
        points = [EdgePoint(i, row, p) for i, row, p in zip(keys, rows, edge_payloads, strict=True)]
        size = rows.nbytes + sum(len(payload["json"].encode()) for payload in edge_payloads)
        check_room(self._store, WRITE_FACTOR * size)
        with self._shard_to_write(collection, removed=0, added=len(ids)) as shard:
            shard.update(UpdateOperation.upsert_points(points))

    def search(
        self, collection: str, vector: Vectors, limit: int, where: Where | None, *, exact: bool
    ) -> list[Point]:
        query = self._validated(collection, vector, ())
        with self._open_shard(collection) as (shard, folder):
            # Take the cache before the query: a write that ends meanwhile discards this cache.
            cache = self._caches.setdefault(collection, {})
            records = shard.query(self._request(query.tolist(), limit, where))
            scores = {str(record.id): record.score for record in records}
            # If a cached vector gives another score, the case was changed or the vector is damaged.
            cases = {
                id_: case
                for id_, score in scores.items()
                if (case := cache.get(id_))
                and isclose(case[1] @ query, score, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
            }
            if uncached := [id_ for id_ in scores if id_ not in cases]:
                loaded: dict[str, tuple[str, Vectors]] = {}
                for record in shard.retrieve(uuids(uncached), with_payload=True, with_vector=True):
                    stored_vector = np.asarray(record.vector, dtype=np.float32)
                    point = folder.point(record, vector=stored_vector)
                    loaded[point.id] = (record.payload or {})["json"], stored_vector
                cases |= loaded
                if len(cache) + len(loaded) > MAX_CACHED_CASES:
                    cache.clear()
                if len(loaded) <= MAX_CACHED_CASES:
                    for id_, (text, row) in loaded.items():
                        if len(text) <= MAX_CACHED_CHARACTERS:
                            cache[id_] = text, row
            if len(cases) < len(scores):
                # Another thread deleted a case after the query. Query again, with the cases.
                settings = {"with_payload": True, "with_vector": True}
                records = shard.query(self._request(query.tolist(), limit, where, **settings))
                return [_point_with_vector(folder, record, record.score) for record in records]
        results = ((id_, score, *cases[id_]) for id_, score in scores.items())
        return [Point(id_, json.loads(text), score, row) for id_, score, text, row in results]

    def rank(self, collection: str, vectors: Vectors, limit: int, where: Where | None) -> Rankings:
        from qdrant_edge import QueryBatchRequest

        rows = self._validated(collection, vectors, (len(vectors),)).tolist()
        requests = [self._request(row, limit, where) for row in rows]
        with self._open_shard(collection) as (shard, _):
            answers = shard.query_batch(QueryBatchRequest(requests))
            return [[(str(record.id), record.score) for record in answer] for answer in answers]

    def get(self, collection: str, ids: Sequence[str], *, vectors: bool = False) -> list[Point]:
        with self._open_shard(collection) as (shard, folder):
            records = shard.retrieve(uuids(ids), with_payload=True, with_vector=vectors)
            if vectors:
                return [_point_with_vector(folder, record) for record in records]
            return [folder.point(record) for record in records]

    def scroll(self, collection: str, where: Where | None) -> list[Point]:
        condition = edge_filter(where)
        with self._open_shard(collection) as (shard, folder):
            return [folder.point(record) for record in scroll_records(shard, filter=condition)]

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        from qdrant_edge import UpdateOperation

        with self._shard_to_write(collection, removed=len(ids), added=0) as shard:
            shard.update(UpdateOperation.delete_points(uuids(ids)))

    def drop(self, collection: str) -> None:
        with self._locked():
            folder = ShardFolder(self._store, collection)
            self._layouts.pop(collection, None)
            self._checked.discard(collection)
            if (shard := self._shards.pop(collection, None)) is not None:
                folder.close(shard)
            self._caches.pop(collection, None)
            folder.remove()

    def count(self, collection: str, where: Where | None) -> int:
        from qdrant_edge import CountRequest

        condition = edge_filter(where)
        with self._open_shard(collection) as (shard, _):
            return shard.count(CountRequest(exact=True, filter=condition))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            # Wait for calls: the process aborts if Python ends a daemon thread inside of Rust code.
            self._lock.wait_for(lambda: not self._running_calls)
            while self._shards:
                collection, shard = self._shards.popitem()
                ShardFolder(self._store, collection).close(shard)
            self._folder_lock.close()

    @staticmethod
    def _request(vector: list[float], limit: int, where: Where | None, **settings: Any) -> Any:
        from qdrant_edge import Query, QueryRequest, SearchParams

        settings |= {"filter": edge_filter(where), "params": SearchParams(exact=True)}
        return QueryRequest(query=Query.Nearest(vector), limit=min(limit, MAX_LIMIT), **settings)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock, folder_errors(self._store):
            if self._closed:
                raise StoreError(f"The store at {self._store} is closed. Open it again.")
            yield

    def _layout(
        self, collection: str, *, fresh: bool = False
    ) -> tuple[int, Mapping[str, Any]] | None:
        """Return dimension and layout; ``None`` if there is no such collection."""
        with self._locked():
            if fresh or collection not in self._layouts:
                self._layouts.pop(collection, None)
                folder = ShardFolder(self._store, collection)
                if not folder.path.exists():
                    return None
                self._check(folder)
                self._layouts[collection] = folder.layout()
            return self._layouts[collection]

    def _check(self, folder: ShardFolder) -> None:
        if folder.collection not in self._checked and not folder.check():
            # A child loads the shard of a killed process first, since loading may crash.
            examine(folder, self._folder_lock)
        self._checked.add(folder.collection)

    @contextmanager
    def _shard_to_write(self, collection: str, removed: int, added: int) -> Iterator[EdgeShard]:
        """Yield a shard for a write of at most ``removed`` removals and ``added`` additions."""
        shard_context = self._open_shard(collection, reading=False)
        with self.write_lock, shard_context as (shard, folder), folder_errors(self._store):
            count = shard.info().points_count
            folder.write_count(count - removed, count + added)
            try:
                yield shard
            finally:
                self._caches.pop(collection, None)
            count = shard.info().points_count
            folder.write_count(count, count)

    @contextmanager
    def _open_shard(
        self, collection: str, *, reading: bool = True
    ) -> Iterator[tuple[EdgeShard, ShardFolder]]:
        """Yield a collection's shard and folder for one call; load the shard if needed."""
        folder = ShardFolder(self._store, collection)
        with self._locked():
            if collection not in self._shards:
                if not folder.path.exists():
                    raise self._missing_error(collection)
                self._check(folder)
                self._shards[collection] = folder.load()
            shard = self._shards[collection]
            self._running_calls += 1
        try:
            with folder.converted_errors(reading=reading):
                yield shard, folder
        except StoreError as error:
            with self._locked():
                # Another thread may have dropped the collection.
                if self._shards.get(collection) is not shard:
                    raise self._missing_error(collection) from error
            raise
        finally:
            with self._lock:
                self._running_calls -= 1
                self._lock.notify_all()

    def _validated(self, collection: str, vectors: Vectors, leading: tuple[int, ...]) -> Vectors:
        """Return finite vectors of shape (*leading, dimension); raise ``InputError`` for others."""
        if (entry := self._layout(collection)) is None:
            raise self._missing_error(collection)
        shape = (*leading, entry[0])
        if vectors.shape != shape or not np.isfinite(vectors).all():
            raise InputError(
                f"The collection {collection!r} at {self._store} takes finite vectors of shape "
                f"{shape}, and was given shape {vectors.shape} with "
                f"{int((~np.isfinite(vectors)).sum())} numbers that are NaN or infinite. "
                "Check the encoder."
            )
        return np.ascontiguousarray(vectors, dtype=np.float32)

    def _missing_error(self, collection: str) -> NoCollectionError:
        return NoCollectionError(f"The store at {self._store} has no collection {collection!r}.")


def _point_with_vector(folder: ShardFolder, record: Any, score: float = 0.0) -> Point:
    return folder.point(record, score, np.asarray(record.vector, dtype=np.float32))
