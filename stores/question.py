"""A question put to a store: searched for more than once, by its own vector or by others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores.asked import SLACK, Asked, spread
from casewright.stores.engines.engine import NoCollectionError, Ranked, RecommendStrategy, Where
from casewright.stores.finding import Finder
from casewright.stores.hit import DECIMALS, Hit
from casewright.stores.tenant import within


@dataclass(frozen=True, slots=True)
class Found:
    """A hit, and by which score a search found it.

    Attributes:
        hit: The case, scored against the question.
        nearness: The score of the search that found it, which may have been for something else.
    """

    hit: Hit
    nearness: float


@dataclass(frozen=True, slots=True)
class Question:
    """A question that was embedded once; made by ``CaseStore.question``.

    Whatever finds a case, the hit's scores are against the question itself. No score has a part of
    quality in it.

    Attributes:
        text: The question.
        asked: It, embedded and weighted.
        finder: Reads the store.
        where: Metadata that every case found must have.
    """

    text: str
    asked: Asked
    finder: Finder
    where: Where | None

    @property
    def units(self) -> NDArray[np.float32]:
        """The facets' unit vectors of the question, concatenated: array (d,)."""
        return self.asked.units

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts, each as a question of its own: array (n, d)."""
        schema = self.asked.schema
        return schema.vectors([schema.query(text) for text in texts], query=True)

    def hits(self, ids: Sequence[str]) -> list[Hit]:
        """Return the cases of these ids as hits, in their order; unknown ids are left out."""
        return self.asked.hits(self.finder.points(ids, vectors=True))

    def best(self, k: int, *, exclude: Collection[str] = ()) -> list[Found]:
        """Return the k best cases that are not excluded, by score and then id."""
        left = set(exclude)
        hits = self.finder.best(self.asked, k + len(left), self.where, exact=False)
        return [Found(hit, hit.score) for hit in hits if hit.case.id not in left][:k]

    def nearest(
        self, vectors: NDArray[np.float32], k: int, *, exclude: Collection[str] = ()
    ) -> list[Found]:
        """Return the k cases nearest to any of m vectors, in one batch of exact searches.

        Nearness is the largest of the m weighted sums of the facets' dot products: of cosines,
        where the vectors' facets are unit vectors.

        Args:
            vectors: Array (m, d), facets concatenated as in ``Hit.vector``.
            k: How many cases.
            exclude: Ids of cases that are not wanted.
        """
        engine, collection = self.finder.engine, self.finder.collection
        weighed = self._weighed(vectors)

        def ranked(limit: int) -> list[list[Ranked]]:
            return engine.rank(collection, weighed, limit, self._bound)

        return self._best_of(ranked, k, set(exclude))

    def recommended(
        self,
        positive: NDArray[np.float32],
        negative: NDArray[np.float32],
        k: int,
        *,
        exclude: Collection[str] = (),
        strategy: RecommendStrategy = "best_score",
    ) -> list[Found]:
        """Return the k best cases of Qdrant's recommend query.

        Args:
            positive: What they are to be like, array (p, d) with p at least 1.
            negative: What they are not to be like, array (n, d).
            k: How many cases.
            exclude: Ids of cases that are not wanted.
            strategy: See ``Engine.recommend``; nearness is the score that it gives.
        """
        engine, collection = self.finder.engine, self.finder.collection
        examples = self._weighed(positive), self._weighed(negative)

        def ranked(limit: int) -> list[list[Ranked]]:
            return [engine.recommend(collection, *examples, limit, self._bound, strategy=strategy)]

        return self._best_of(ranked, k, set(exclude))

    def matching(self, where: Where, *, exclude: Collection[str] = ()) -> list[Found]:
        """Return every case that meets a condition beside the question's own, by score, then id.

        Where both name a field, the question's condition counts.

        Args:
            where: Metadata that a case must have; see ``engine.Where``.
            exclude: Ids of cases that are not wanted.
        """
        both = within({**where, **(self.where or {})}, self.finder.tenant)
        try:
            points = self.finder.engine.scroll(self.finder.collection, both)
        except NoCollectionError:
            return []
        left = set(exclude)
        hits = self.hits([point.id for point in points if point.id not in left])
        hits.sort(key=lambda hit: (-round(hit.score, DECIMALS), hit.case.id))
        return [Found(hit, hit.score) for hit in hits]

    @property
    def _bound(self) -> Where | None:
        return within(self.where, self.finder.tenant)

    def _weighed(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return vectors as the engine is asked for them: by the weights, and no quality."""
        length = len(self.asked.units)
        given = np.asarray(vectors, dtype=np.float32)
        if given.ndim != 2 or given.shape[1] != length:
            raise InputError(
                f"A search was given vectors of shape {given.shape}. Give an array (m, {length}): "
                "the schema's facets, concatenated."
            )
        weighed = given * spread(self.asked.schema, self.asked.shares)
        return np.pad(weighed.astype(np.float32), ((0, 0), (0, 1)))

    def _best_of(
        self, ranked: Callable[[int], list[list[Ranked]]], k: int, exclude: set[str]
    ) -> list[Found]:
        """Return the k best of several rankings; fetch on while ties cross the cut."""
        limit = k + len(exclude) + 2
        while k > 0:
            try:
                rankings = ranked(limit)
            except NoCollectionError:
                return []
            best: dict[str, float] = {}
            for id_, score in (one for each in rankings for one in each):
                best[id_] = max(score, best.get(id_, score))
            # What a case that was not fetched may score.
            rest = max((each[-1][1] for each in rankings if len(each) == limit), default=-np.inf)
            kept = best.keys() - exclude
            order = sorted(kept, key=lambda id_: (-round(best[id_], DECIMALS), id_))[:k]
            if len(order) < k or round(best[order[-1]], DECIMALS) > rest + SLACK:
                return [Found(hit, best[hit.case.id]) for hit in self.hits(order)]
            limit *= 2
        return []
