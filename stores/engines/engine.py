"""The interface of a vector engine, limited to what a store needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from casewright.errors import StoreError
from casewright.stores.engines.upload import Ids, Payloads, Upload, Vectors

#: A metadata field to its required value, values, or range of numbers as ``{"gte": 1, "lt": 5}``;
#: ``{"not": …}`` excludes a value or values.
Where = Mapping[str, "str | int | bool | Sequence[str | int] | Mapping[str, Any]"]
#: The id of a point, and its score.
Ranked = tuple[str, float]


class NoCollectionError(StoreError):
    """The collection does not exist: it was never made, or another store removed it."""


@dataclass(frozen=True, slots=True)
class Point:
    """A stored case in an engine: id, payload, and optionally score and vector."""

    id: str
    payload: Mapping[str, Any]
    score: float = 0.0
    vector: Vectors | None = None


class Engine(Protocol):
    """A vector engine that holds collections of points with one dense vector, compared by Dot.

    Implementations are thread-safe and raise only ``StoreError`` and its subclasses;
    ``NoCollectionError`` from every call that needs a missing collection.
    """

    @property
    def writing(self) -> AbstractContextManager[Any]:
        """A lock for writes that depend on earlier reads.

        It excludes the threads of this process, not other users of a server.
        """

    def layout(self, collection: str, *, fresh: bool = False) -> Mapping[str, Any] | None:
        """Return the layout given to ``create``; ``None`` if there is no such collection.

        It is cached; ``fresh`` reads the collection, which another user of a server may have made
        anew.
        """

    def create(self, collection: str, dimension: int, layout: Mapping[str, Any]) -> None:
        """Make an empty collection with a layout; an existing one is not changed."""

    def upsert(self, collection: str, ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
        """Write n points, and return once they are acknowledged."""

    def uploading(
        self, collection: str, done: Callable[[int], None]
    ) -> AbstractContextManager[Upload]:
        """Return a context to write many batches, which are acknowledged at its end.

        It takes ``writing`` itself, and calls ``done`` in the caller's thread with the number of
        points stored since the last call.
        """

    def search(
        self, collection: str, vector: Vectors, limit: int, where: Where | None, *, exact: bool
    ) -> list[Point]:
        """Return the points of the highest dot product, best first, with vector and payload.

        Without ``exact``, an engine with options for it may search approximately.
        """

    def rank(
        self, collection: str, vectors: Vectors, limit: int, where: Where | None
    ) -> list[list[Ranked]]:
        """Search exactly for m vectors, array (m, dimension), in one pass."""

    def get(self, collection: str, ids: Sequence[str], *, vectors: bool = False) -> list[Point]:
        """Return the points that exist, in any order, optionally with vectors."""

    def scroll(self, collection: str, where: Where | None) -> list[Point]:
        """Return all points that match, in any order."""

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Remove points; unknown ids are no error."""

    def drop(self, collection: str) -> None:
        """Remove a collection; an unknown one is no error."""

    def count(self, collection: str, where: Where | None) -> int:
        """Count the points that match, exactly."""

    def close(self) -> None:
        """Release files, locks and connections; calling it twice is no error."""


class InProcess:
    """An engine in this process: it writes each batch at once."""

    def uploading(
        self: Engine, collection: str, done: Callable[[int], None]
    ) -> AbstractContextManager[Upload]:
        """Write batches one after the other; see ``Engine``."""

        def upload(ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
            with self.writing:
                self.upsert(collection, ids, vectors, payloads)
            done(len(ids))

        return nullcontext(upload)
