"""The interface of a vector engine: the operations that a store needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from casewright.errors import StoreError
from casewright.stores.engines.upload import Ids, Payloads, UploadContext, Vectors

#: Conditions on metadata, which must all hold. A field maps to the required value, to a list of
#: allowed values, or to a range of numbers such as ``{"gte": 1, "lt": 5}``. ``{"not": …}`` excludes
#: a value or the values of a list.
Where = Mapping[str, "str | int | bool | Sequence[str | int] | Mapping[str, Any]"]
#: Ids and scores of points, the best first, for each of several query vectors.
Rankings = list[list[tuple[str, float]]]


class NoCollectionError(StoreError):
    """The collection does not exist: it was never created, or another client removed it."""


@dataclass(frozen=True, slots=True)
class Point:
    """A stored case: id, payload (the case's JSON form), and optionally score and vector."""

    id: str
    payload: Mapping[str, Any]
    score: float = 0.0
    vector: Vectors | None = None


class Engine(Protocol):
    """A vector engine: collections of points with one dense vector each, compared by dot product.

    Implementations are thread-safe. They raise ``StoreError`` and its subclasses, such as
    ``NoCollectionError`` for a missing collection, and ``InputError`` for data that they refuse.
    """

    @property
    def write_lock(self) -> AbstractContextManager[Any]:
        """The lock that threads of this process hold for writes that depend on earlier reads."""

    def layout(self, collection: str, *, fresh: bool = False) -> Mapping[str, Any] | None:
        """Return the layout that ``create`` got; ``None`` if there is no such collection.

        The layout is cached. ``fresh`` reads it again: another client may have replaced it.
        """

    def create(self, collection: str, dimension: int, layout: Mapping[str, Any]) -> None:
        """Create an empty collection unless it exists; ``layout`` is the schema as JSON."""

    def upsert(self, collection: str, ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
        """Write points, and return when the engine has acknowledged them."""

    def uploading(self, collection: str, on_stored: Callable[[int], None]) -> UploadContext:
        """Return a context for writing many batches; when it exits, all are acknowledged.

        Each write holds ``write_lock``. The context calls ``on_stored``, in the caller's thread,
        with the number of points stored since the last such call.
        """

    def search(
        self, collection: str, vector: Vectors, limit: int, where: Where | None, *, exact: bool
    ) -> list[Point]:
        """Return the ``limit`` points with the highest dot products, the best first, with vectors.

        With ``exact=False``, an engine may search approximately.
        """

    def rank(self, collection: str, vectors: Vectors, limit: int, where: Where | None) -> Rankings:
        """Return the exact ranking for each of the query vectors, an array (m, dimension)."""

    def get(self, collection: str, ids: Sequence[str], *, vectors: bool = False) -> list[Point]:
        """Return the points that exist for these ids, in any order, optionally with vectors."""

    def scroll(self, collection: str, where: Where | None) -> list[Point]:
        """Return all points that match ``where``, in any order."""

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Remove points; ignore unknown ids."""

    def drop(self, collection: str) -> None:
        """Remove a collection; ignore an unknown collection."""

    def count(self, collection: str, where: Where | None) -> int:
        """Return the exact number of points that match ``where``."""

    def close(self) -> None:
        """Release files, locks and connections; a second call does nothing."""


class LocalEngine:
    """A base class of engines that run in this process and write each batch immediately."""

    def uploading(self: Engine, collection: str, on_stored: Callable[[int], None]) -> UploadContext:
        """Return a context that writes batches one after the other; see ``Engine``."""

        def upload(ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
            with self.write_lock:
                self.upsert(collection, ids, vectors, payloads)
            on_stored(len(ids))

        return nullcontext(upload)
