"""The engine of a Qdrant server or cluster."""

# ruff: noqa: D102 - ``Engine`` documents the methods.

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from casewright.errors import InputError, one_line
from casewright.stores.engines.engine import Point, Where
from casewright.stores.engines.payload import check_numbers, read_server_payload, server_payload
from casewright.stores.engines.qdrant_engine import PAGE_SIZE, QdrantEngine
from casewright.stores.engines.server_calls import ServerCalls
from casewright.stores.engines.server_options import ServerOptions
from casewright.stores.engines.upload import (
    Ids,
    Payloads,
    SharedLock,
    UploadContext,
    Uploads,
    Vectors,
)

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

Answer = TypeVar("Answer")


class ServerEngine(QdrantEngine):
    """An engine on a server's client, which is thread-safe: single requests need no lock."""

    _payload = staticmethod(server_payload)
    _read_payload = staticmethod(read_server_payload)

    def __init__(
        self, client: QdrantClient, location: str, calls: ServerCalls, options: ServerOptions
    ) -> None:
        super().__init__(client, location)
        self._calls, self._options = calls, options
        self._lock = nullcontext()
        # One lock with two names: the type of ``write_lock`` has no ``shared``.
        self.write_lock = self._shared_lock = SharedLock()

    @classmethod
    def open(
        cls,
        location: str,
        *,
        api_key: str | None = None,
        timeout: int = 10,
        options: ServerOptions | None = None,
    ) -> ServerEngine:
        """Open a server or cluster by its URL; ``timeout`` is in seconds for one request.

        Raise ``InputError`` if the client refuses an option, ``StoreError`` if a first call fails.
        """
        from qdrant_client import QdrantClient

        options = options or ServerOptions()
        settings = {"check_compatibility": False, **options.client}
        try:
            client = QdrantClient(url=location, api_key=api_key, timeout=timeout, **settings)
        except Exception as error:
            problem = f"Qdrant's client refuses the server options for {location}"
            raise InputError(f"{problem}: {one_line(error)}.") from error
        headers = options.client.get("headers") or {}
        secrets = [api_key or "", *map(str, headers.values())]
        calls = ServerCalls(location, retries=options.retries, timeout=timeout, secrets=secrets)
        engine = cls(client, location, calls, options)
        try:
            engine._read(lambda client: client.get_collections())
        except BaseException:
            client.close()
            raise
        return engine

    def create(self, collection: str, dimension: int, layout: Mapping[str, Any]) -> None:
        super().create(collection, dimension, layout)
        # Qdrant's HNSW graph has links for a field only if the field's index precedes the cases.
        create_index = partial(self._client.create_payload_index, collection, wait=True)
        for path, index in self._options.payload_indexes().items():
            self._calls.write(partial(create_index, field_name=path, field_schema=index))

    def upsert(self, collection: str, ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
        for start in range(0, len(ids), self._options.upload_batch):
            rows = slice(start, start + self._options.upload_batch)
            super().upsert(collection, ids[rows], vectors[rows], payloads[rows])

    def uploading(self, collection: str, on_stored: Callable[[int], None]) -> UploadContext:
        def write(ids: Ids, vectors: Vectors, payloads: Payloads, stop: threading.Event) -> None:
            with self._shared_lock.shared():
                batch = self._batch(ids, vectors, payloads)
                upsert = partial(self._client.upsert, collection, points=batch, wait=True)
                self._calls.write(upsert, stop)

        parallel, size = self._options.parallel, self._options.upload_batch
        return Uploads(write, parallel=parallel, size=size, on_stored=on_stored)

    def search(
        self, collection: str, vector: Vectors, limit: int, where: Where | None, *, exact: bool
    ) -> list[Point]:
        points = super().search(collection, vector, limit, where, exact=exact)
        if exact or self._options.search is None:
            return points
        # The server may score quantized vectors, so scores are computed again from full vectors.
        pairs = [(point, point.vector) for point in points if point.vector is not None]
        return [replace(point, score=float(full_vector @ vector)) for point, full_vector in pairs]

    def get(self, collection: str, ids: Sequence[str], *, vectors: bool = False) -> list[Point]:
        points: list[Point] = []
        for start in range(0, len(ids), PAGE_SIZE):
            points += super().get(collection, ids[start : start + PAGE_SIZE], vectors=vectors)
        return points

    def _create(self, collection: str, dimension: int, metadata: dict[str, Any]) -> None:
        vector = self._options.vector_params(dimension)
        settings = {**self._options.collection, "vectors_config": vector, "metadata": metadata}
        self._write(lambda client: client.create_collection(collection, **settings))

    def _params(self, *, exact: bool) -> models.SearchParams:
        """Return search parameters; an exact search uses neither quantized vectors nor HNSW."""
        from qdrant_client import models

        if exact or self._options.search is None:
            return models.SearchParams(exact=True)
        return self._options.search

    def _filter(self, where: Where | None) -> models.Filter | None:
        check_numbers(where)
        return super()._filter(where)

    def _read(self, request: Callable[[QdrantClient], Answer]) -> Answer:
        return self._calls.read(lambda: request(self._client))

    def _write(self, request: Callable[[QdrantClient], Answer]) -> Answer:
        return self._calls.write(lambda: request(self._client))
