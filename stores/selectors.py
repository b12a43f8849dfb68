"""Which cases are shown to a model as demonstrations: RAGSys's retrievers, and a fixed primer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from casewright.errors import InputError
from casewright.stores.case import Case, canonical_id
from casewright.stores.engines.engine import Where
from casewright.stores.hit import Hit
from casewright.stores.select import Pick, Selection, select
from casewright.stores.store import CaseStore


class Selector(Protocol):
    """Chooses demonstrations for a question."""

    def choose(self, store: CaseStore, query: str | Mapping[str, Any], k: int) -> list[Case]:
        """Return at most k cases of a store, in the order in which a prompt shows them."""


@dataclass(frozen=True, slots=True)
class MarginalSelector:
    """Maximal marginal relevance with quality bias (RAGSys, Algorithm 1), and what it contains.

    Attributes:
        lambda_d: Share of the relevance; 1 leaves diversity out.
        lambda_b: Share of the similarity in the relevance; 1 leaves quality out, 0 leaves nothing
            but quality, and above 1 a low quality is preferred (see ``CaseStore.search``).
        weights: See ``CaseStore.search``.
        where: See ``CaseStore.search``.
    """

    lambda_d: float = 0.75
    lambda_b: float = 0.95
    weights: Mapping[str, float] | None = None
    where: Where | None = None

    def choose(self, store: CaseStore, query: str | Mapping[str, Any], k: int) -> list[Case]:
        """Return the selected cases; see ``CaseStore.select``."""
        return [hit.case for hit in self.select(store, query, k).hits]

    def select(
        self, store: CaseStore, query: str | Mapping[str, Any], k: int, where: Where | None = None
    ) -> Selection:
        """Select cases of a store, with the numbers that they were selected by.

        Args:
            store: The store.
            query: See ``CaseStore.search``.
            k: How many.
            where: Holds for this query, beside the selector's own conditions.
        """
        return store.select(
            query,
            k,
            lambda_d=self.lambda_d,
            lambda_b=self.lambda_b,
            weights=self.weights,
            where={**(self.where or {}), **(where or {})},
        )

    def candidates(self, store: CaseStore, query: str | Mapping[str, Any], most: int) -> list[Hit]:
        """Return the best cases by score, for ``pick`` to choose among those that will do."""
        return store.search(
            query, most, weights=self.weights, lambda_b=self.lambda_b, where=self.where
        )

    def pick(self, store: CaseStore, hits: Sequence[Hit], k: int) -> list[Pick]:
        """Select among candidates of a store, not among all of its cases as ``select`` does."""
        return select(hits, k, store.schema, lambda_d=self.lambda_d, weights=self.weights)


#: The retrievers that RAGSys compares, with its default shares.
BIAS = MarginalSelector(lambda_d=1.0, lambda_b=0.0)
RELEVANCE = MarginalSelector(lambda_d=1.0, lambda_b=1.0)
RELEVANCE_BIAS = MarginalSelector(lambda_d=1.0, lambda_b=0.95)
RELEVANCE_DIVERSITY = MarginalSelector(lambda_d=0.75, lambda_b=1.0)
RELEVANCE_DIVERSITY_BIAS = MarginalSelector(lambda_d=0.75, lambda_b=0.95)


@dataclass(frozen=True, slots=True)
class PrimerSelector:
    """The same cases for every question, as a hand-written primer has them.

    Attributes:
        ids: Of the cases, in their order.
    """

    ids: Sequence[str]

    def __post_init__(self) -> None:
        if isinstance(self.ids, str):
            raise InputError(f"A primer was given the ids {self.ids!r}. Give a list of ids.")

    def choose(self, store: CaseStore, query: str | Mapping[str, Any], k: int) -> list[Case]:
        """Return the first k of the primer's cases, whatever is asked.

        Raises:
            InputError: The store has not all of them: a shorter primer would be another one.
        """
        wanted = list(self.ids)[: max(k, 0)]
        found = store.get(wanted)
        if len(found) < len(wanted):
            known = {case.id for case in found}
            missing = next(id_ for id_ in wanted if canonical_id(id_) not in known)
            raise InputError(
                f"The primer's case {missing} is not in the store {store.schema.name!r}. Give the "
                "ids of cases that it has."
            )
        return found
