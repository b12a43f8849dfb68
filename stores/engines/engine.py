"""The interface of a vector engine: what a store needs, and nothing more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from casewright.errors import StoreError
from casewright.stores.engines.upload import Ids, Payloads, Upload, Vectors

#: A metadata field to what a case must have there: a value, one of several, or a range of numbers
#: as ``{"gte": 1, "lt": 5}``; ``{"not": …}`` keeps those that have none of the value or values.
Where = Mapping[str, "str | int | bool | Sequence[str | int] | Mapping[str, Any]"]
#: The id of a point, and its score.
Ranked = tuple[str, float]
#: How a recommend query scores a point against its examples; see ``Engine.recommend``.
RecommendStrategy = Literal["best_score", "sum_scores"]


class NoCollectionError(StoreError):
    """The collection is not there: it was never made, or another store removed it."""


@dataclass(frozen=True, slots=True)
class Point:
    """A stored case as the engine knows it: id, payload, and where asked for score and vector."""

    id: str
    payload: Mapping[str, Any]
    score: float = 0.0
    vector: Vectors | None = None


class Engine(Protocol):
    """A vector engine that holds collections of points with one dense vector, compared by Dot.

    Implementations are thread-safe and raise ``StoreError`` and its kinds only;
    ``NoCollectionError`` from every call that needs a collection which is not there.
    """

    @property
    def writing(self) -> AbstractContextManager[Any]:
        """A lock for whoever writes what depends on what they have read.

        It keeps the threads of this process apart, not the users of a server.
        """

    def layout(self, collection: str, *, fresh: bool = False) -> Mapping[str, Any] | None:
        """Return what ``create`` was given, or ``None`` where there is no such collection.

        It is remembered, so that asking is cheap; ``fresh`` asks the collection itself, which a
        user of the same server may have made anew.
        """

    def create(self, collection: str, dimension: int, layout: Mapping[str, Any]) -> None:
        """Make an empty collection that remembers its layout; one that exists stays as it is."""

    def upsert(self, collection: str, ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
        """Write n points; returns once they are acknowledged."""

    def uploading(
        self, collection: str, done: Callable[[int], None]
    ) -> AbstractContextManager[Upload]:
        """Return a way to write many batches; they are acknowledged when it is left without error.

        It takes ``writing`` itself; ``done`` is told, in the caller's thread, how many more points
        are stored.
        """

    def search(
        self,
        collection: str,
        vector: Vectors,
        limit: int,
        where: Where | None,
        *,
        exact: bool = True,
    ) -> list[Point]:
        """Return the points of the highest dot product, best first, with vector and payload.

        Without ``exact``, an engine that was told how may search approximately.
        """

    def rank(
        self, collection: str, vectors: Vectors, limit: int, where: Where | None
    ) -> list[list[Ranked]]:
        """Search for m vectors, array (m, dimension), in one pass, exactly: ids and scores only."""

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
        """Search for what is near to some vectors and far from others, exactly.

        This is Qdrant's recommend query with raw vectors ("Explore the data" in its documentation).
        Of a point with vector v, let a be the highest dot product of v with a positive example, and
        b that with a negative one, minus infinity where there is none. The scores are

        - ``best_score``: s(a) if a > b, else -s(b), where s(x) = (1 + x / (1 + abs(x))) / 2 lies
          between 0 and 1. So a point that is as near to a negative example as to a positive one
          scores as negative, and rounding may decide where the two are nearly equal.
        - ``sum_scores``: the sum of the dot products of v with the positive examples, less the sum
          of those with the negative ones.

        Its third strategy, ``average_vector``, is a plain search: ``rank`` for twice the mean of
        the positive examples less the mean of the negative ones, or without negative ones for the
        mean of the positive ones.

        Args:
            collection: Its name.
            positive: Array (p, dimension), p at least 1. Points equal to an example are found too.
            negative: Array (n, dimension); n may be 0.
            limit: The most points to return.
            where: What a point's metadata must have; ``None`` for every point.
            strategy: Which scores.

        Returns:
            Ids and scores, best first; the order of equal scores is the engine's.

        Raises:
            InputError: p is 0, the arrays differ in dimension or are not finite, the strategy is
                not known, or no engine could answer the condition.
            NoCollectionError: There is no such collection.
            StoreError: The engine fails, or its collection is of another dimension, where it does
                not say so by ``InputError``.
        """

    def get(self, collection: str, ids: Sequence[str], *, vectors: bool = False) -> list[Point]:
        """Return those of the points that exist, in any order; with their vectors if asked to."""

    def scroll(self, collection: str, where: Where | None) -> list[Point]:
        """Return all points that match, in any order."""

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Remove points; unknown ids are no error."""

    def drop(self, collection: str) -> None:
        """Remove a whole collection; an unknown one is no error."""

    def count(self, collection: str, where: Where | None) -> int:
        """Count the points that match, exactly."""

    def close(self) -> None:
        """Release files, locks and connections; calling it twice is no error."""


class InProcess:
    """An engine in this process, which does best to write each batch at once."""

    def uploading(
        self: Engine, collection: str, done: Callable[[int], None]
    ) -> AbstractContextManager[Upload]:
        """Write batches one after the other; see ``Engine``."""

        def upload(ids: Ids, vectors: Vectors, payloads: Payloads) -> None:
            with self.writing:
                self.upsert(collection, ids, vectors, payloads)
            done(len(ids))

        return nullcontext(upload)
