"""The interface of a vector engine: the operations that a store needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from casewright.errors import StoreError
from casewright.stores.engines.upload import Ids, Payloads, UploadContext, Vectors

#: A condition on metadata. A field maps to the required value, to a list of allowed values, or to a
#: range of numbers such as ``{"gte": 1, "lt": 5}``; ``{"not": …}`` excludes a value or a list.
Where = Mapping[str, "str | int | bool | Sequence[str | int] | Mapping[str, Any]"]
#: Ids and scores of points, the best first, for each of several query vectors.
Rankings = list[list[tuple[str, float]]]


class NoCollectionError(StoreError):
    """The collection does not exist: it was never created, or another store removed it."""


@dataclass(frozen=True, slots=True)
class Point:
    """A stored case in an engine: id, payload, and optionally score and vector."""

    id: str
    payload: Mapping[str, Any]
    score: float = 0.0
    vector: Vectors | None = None


class Engine(Protocol):
    """A vector engine: collections of points with one dense vector, compared by dot product.

    Implementations are thread-safe. They raise ``StoreError`` and its subclasses, such as
    ``NoCollectionError`` for a missing collection, and ``InputError`` for data that they refuse.
    """

    @property
    def writing(self) -> AbstractContextManager[Any]:
        """The lock for writes that depend on earlier reads, among the threads of this process."""

    def layout(self, collection: str, *, fresh: bool = False) -> Mapping[str, Any] | None:
        """Return the layout given to ``create``; ``None`` if there is no such collection.

        The layout is cached. ``fresh`` reads it again: another client may have replaced it.
        """

    def create(self, collection: str, dimension: int, layout: Mapping[str, Any]) -> None:
        """Create an empty collection unless it exists; ``layout`` is its schema as JSON."""

    def upsert(self, collection: str, ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
        """Write n points, and return when the engine has acknowledged them."""

    def uploading(self, collection: str, on_stored: Callable[[int], None]) -> UploadContext:
        """Return a context that writes many batches; when it exits, all are acknowledged.

        The context holds ``writing``. It calls ``on_stored``, in the caller's thread, with the
        number of points stored since the last call.
        """

    def search(
        self, collection: str, vector: Vectors, limit: int, where: Where | None, *, exact: bool
    ) -> list[Point]:
        """Return the points with the highest dot products, the best first, with vector and payload.

        With ``exact=False``, an engine that supports it may search approximately.
        """

    def rank(self, collection: str, vectors: Vectors, limit: int, where: Where | None) -> Rankings:
        """Return the exact rankings for m vectors, array (m, dimension), computed in one pass."""

    def get(self, collection: str, ids: Sequence[str], *, vectors: bool = False) -> list[Point]:
        """Return the existing points of these ids, in any order, optionally with vectors."""

    def scroll(self, collection: str, where: Where | None) -> list[Point]:
        """Return all points that match, in any order."""

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Remove points; ignore unknown ids."""

    def drop(self, collection: str) -> None:
        """Remove a collection; ignore an unknown collection."""

    def count(self, collection: str, where: Where | None) -> int:
        """Count the points that match, exactly."""

    def close(self) -> None:
        """Release files, locks and connections; a second call does nothing."""


class InProcess:
    """A base of engines in this process, which write each batch immediately."""

    def uploading(self: Engine, collection: str, on_stored: Callable[[int], None]) -> UploadContext:
        """Return a context that writes batches one after the other; see ``Engine``."""

        def upload(ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
            with self.writing:
                self.upsert(collection, ids, vectors, payloads)
            on_stored(len(ids))

        return nullcontext(upload)
