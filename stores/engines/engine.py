"""The interface of a vector engine, limited to what a store needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np

from casewright.errors import InputError, StoreError
from casewright.stores.engines.upload import Ids, Payloads, Upload, Vectors

#: A metadata field to its required value, values, or range of numbers as ``{"gte": 1, "lt": 5}``;
#: ``{"not": …}`` excludes a value or values.
Where = Mapping[str, "str | int | bool | Sequence[str | int] | Mapping[str, Any]"]
#: The id of a point, and its score.
Ranked = tuple[str, float]
#: The score of a recommend query; see ``Engine.recommend``.
RecommendScoring = Literal["best_score", "sum_scores"]


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

    def recommend(
        self,
        collection: str,
        positive: Vectors,
        negative: Vectors,
        limit: int,
        where: Where | None,
        *,
        strategy: RecommendScoring = "best_score",
    ) -> list[Ranked]:
        """Search exactly for points near to some vectors and far from others, best first.

        This is Qdrant's recommend query with raw vectors ("Explore the data" in its documentation).
        For a point with vector v, let a be the highest dot product of v with a positive example,
        and b that with a negative one, minus infinity without any. The scores are

        - ``best_score``: s(a) if a > b, else -s(b), where s(x) = (1 + x / (1 + abs(x))) / 2 lies
          between 0 and 1. A point equally near to examples of both kinds scores as negative, and
          rounding may decide if the two are nearly equal. - ``sum_scores``: the sum of the dot
          products of v with the positive examples, less the sum of those with the negative ones.

        Qdrant's third strategy, ``average_vector``, is ``rank`` for twice the mean of the positive
        examples less the mean of the negative ones, or for the mean of the positive ones alone.

        Args:
            collection: Its name.
            positive: Array (p, dimension), p at least 1. Points equal to an example are found too.
            negative: Array (n, dimension); n may be 0.
            limit: The most points to return; the order of equal scores is the engine's.
            where: A condition on the metadata; ``None`` for every point.
            strategy: The score.

        Raises:
            InputError: See ``check_examples``; or no engine could answer the condition.
            StoreError: The engine fails, or the dimension is not the collection's.
        """

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


def check_examples(positive: Vectors, negative: Vectors, strategy: str) -> None:
    """Raise ``InputError`` for bad examples of a recommend query, or an unknown strategy."""
    strategies: tuple[str, ...] = get_args(RecommendScoring)
    if strategy not in strategies:
        raise InputError(
            f"A recommend query has the strategy {strategy!r}. Give one of {', '.join(strategies)}."
        )
    if positive.ndim != 2 or negative.ndim != 2 or positive.shape[1] != negative.shape[1]:
        raise InputError(
            f"A recommend query has positive examples of shape {positive.shape} and negative ones "
            f"of shape {negative.shape}. Give arrays (p, dimension) and (n, dimension); "
            "(0, dimension) for no negative ones."
        )
    if not len(positive):
        raise InputError(
            "A recommend query has no positive example. Give at least one vector to be near to."
        )
    for name, vectors in (("positive", positive), ("negative", negative)):
        if wrong := int((~np.isfinite(vectors)).sum()):
            raise InputError(
                f"Of a recommend query's {name} examples, {wrong} numbers are NaN or infinite. "
                "Check the encoder."
            )
