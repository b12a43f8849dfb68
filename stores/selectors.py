"""Selectors of demonstrations, the examples in a model's prompt, after RAGSys's retrievers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casewright.stores.engines.engine import Where
from casewright.stores.hit import Hit
from casewright.stores.select import Pick, Selection, select
from casewright.stores.store import CaseStore


@dataclass(frozen=True, slots=True)
class MarginalSelector:
    """A selector by maximal marginal relevance with quality bias (RAGSys, Algorithm 1).

    Attributes:
        lambda_d: Share of the score; the rest is the share of diversity.
        lambda_b: Share of the relevance in the score; 1 ignores quality, 0 uses only quality, and a
            value above 1 prefers low quality (see ``CaseStore.search``).
        weights: See ``CaseStore.search``.
        where: See ``CaseStore.search``.
    """

    lambda_d: float = 0.75
    lambda_b: float = 0.95
    weights: Mapping[str, float] | None = None
    where: Where | None = None

    def select(
        self, store: CaseStore, query: str | Mapping[str, Any], k: int, where: Where | None = None
    ) -> Selection:
        """Select cases; ``where`` adds to the selector's condition, and overrides its fields."""
        conditions = {**(self.where or {}), **(where or {})}
        settings: dict[str, Any] = {"weights": self.weights, "where": conditions}
        return store.select(query, k, lambda_d=self.lambda_d, lambda_b=self.lambda_b, **settings)

    def candidates(self, store: CaseStore, query: str | Mapping[str, Any], limit: int) -> list[Hit]:
        """Return the best cases by score, as candidates for ``pick``."""
        settings: dict[str, Any] = {"weights": self.weights, "where": self.where}
        return store.search(query, limit, lambda_b=self.lambda_b, **settings)

    def pick(self, store: CaseStore, hits: Sequence[Hit], k: int) -> list[Pick]:
        """Select k of the candidates; ``select`` selects from all cases of a store."""
        return select(hits, k, store.schema, lambda_d=self.lambda_d, weights=self.weights)


#: The retrievers that RAGSys compares, with its default shares; BIAS is a bias for quality.
BIAS = MarginalSelector(lambda_d=1.0, lambda_b=0.0)
RELEVANCE = MarginalSelector(lambda_d=1.0, lambda_b=1.0)
RELEVANCE_BIAS = MarginalSelector(lambda_d=1.0, lambda_b=0.95)
RELEVANCE_DIVERSITY = MarginalSelector(lambda_d=0.75, lambda_b=1.0)
RELEVANCE_DIVERSITY_BIAS = MarginalSelector(lambda_d=0.75, lambda_b=0.95)
