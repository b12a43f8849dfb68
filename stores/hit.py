"""Results of ``CaseStore.search`` and ``CaseStore.retain``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from casewright.stores.case import Case

#: Scores are rounded to this many decimals and then compared, so that engines agree on the order.
DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Hit:
    """A case found by a search.

    Attributes:
        score: ``lambda_b * relevance + (1 - lambda_b) * quality``.
        relevance: Sum over the facets of weight times cosine.
        facet_scores: The unweighted cosine of each facet; 0 for an absent component. For a passage
            of a document, also ``answer``: the log-odds that the passage answers the question.
        vector: The case's unit vectors of all facets, concatenated.
    """

    case: Case
    score: float
    relevance: float
    facet_scores: Mapping[str, float]
    vector: NDArray[np.float32]

    @property
    def rank_key(self) -> tuple[float, str]:
        """The sort key that puts the best hit first: rounded score, then id."""
        return -round(self.score, DECIMALS), self.case.id


@dataclass(frozen=True, slots=True)
class Retained:
    """The outcome of retaining a case.

    Attributes:
        id: The case's id; for ``duplicate``, the id of the similar case that is stored.
        outcome: ``added``; ``updated`` (the stored case has got a new quality or result);
            ``unchanged``; ``duplicate`` (a similar problem with the same solution is stored);
            ``refused`` (the case did not pass the schema's ``verify``).
        reason: The reason of a refusal.
    """

    id: str
    outcome: Literal["added", "updated", "unchanged", "duplicate", "refused"]
    reason: str = ""


def near_best(hits: Sequence[Hit], min_relevance: float, share_of_best: float) -> list[Hit]:
    """Return hits with at least this relevance and at least this share of the best relevance."""
    best_relevance = max((hit.relevance for hit in hits), default=0.0)
    threshold = max(min_relevance, share_of_best * best_relevance)
    return [hit for hit in hits if hit.relevance >= threshold]
