"""Selection by maximal marginal relevance with quality bias (RAGSys, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from casewright.errors import InputError
from casewright.stores.hit import Hit
from casewright.stores.mmr import mmr
from casewright.stores.schema import CaseSchema


@dataclass(frozen=True, slots=True)
class Pick:
    """A selected hit, with the numbers that it was selected by.

    Attributes:
        hit: The hit; ``hit.score`` is its relevance with the quality bias inside.
        redundancy: Its highest similarity to what was picked before it; 0 for the first.
        value: ``lambda_d * score - (1 - lambda_d) * redundancy``.
    """

    hit: Hit
    redundancy: float
    value: float


@dataclass(frozen=True, slots=True)
class Selection:
    """What was selected from a store.

    Attributes:
        picks: In the order in which they were picked.
        certified: Whether they are proved to be the picks of a selection over all cases.
        candidates: How many cases were looked at.
        searches: How many searches it took, those for the proof included.
    """

    picks: Sequence[Pick]
    certified: bool
    candidates: int
    searches: int

    @property
    def hits(self) -> list[Hit]:
        """The selected hits."""
        return [pick.hit for pick in self.picks]


def select(
    hits: Sequence[Hit],
    k: int,
    schema: CaseSchema,
    *,
    lambda_d: float = 0.75,
    weights: Mapping[str, float] | None = None,
) -> list[Pick]:
    """Pick k of the hits, each relevant and unlike those before it.

    Args:
        hits: Candidates of one search, scores with the quality bias of their ``lambda_b``.
        k: How many to pick; fewer come back where there are fewer hits.
        schema: The schema of the store that was searched.
        lambda_d: Share of the relevance, from 0 (nothing but diversity) to 1 (no diversity).
        weights: The weights of the search; redundancy uses the same, without the quality number.

    Returns:
        Picks in their order; equal values are told apart by score, then id.

    Raises:
        InputError: ``lambda_d`` lies outside 0 to 1, or ``k`` below 0.
    """
    check_selection(k, lambda_d)
    if not hits:
        return []
    vectors = np.stack([hit.vector for hit in hits])
    spread = np.repeat(schema.weights(weights), [facet.dimension for facet in schema.facets])
    scores = np.array([hit.score for hit in hits])
    made = mmr(vectors, spread, scores, [hit.case.id for hit in hits], k, lambda_d)
    return [Pick(hits[one.row], one.redundancy, one.value) for one in made]


def check_selection(k: int, lambda_d: float) -> None:
    """Raise ``InputError`` for settings that nothing can be selected by."""
    check_counts(0, k=k)
    check_share(lambda_d=lambda_d)


def check_counts(least: int, **counts: Any) -> None:
    """Raise ``InputError`` for what is no whole number, or less than the least."""
    for name, count in counts.items():
        # NumPy's whole numbers are integral ones too.
        if not isinstance(count, Integral) or count < least:
            raise InputError(f"{name}={count!r}: give a whole number, at least {least}.")


def check_share(**shares: Any) -> None:
    """Raise ``InputError`` for what is no number from 0 to 1."""
    _check(shares, 1, "the share of the relevance is from 0 to 1.")


def check_bias(**shares: Any) -> None:
    """Raise ``InputError`` for what is no number from 0 to 2."""
    _check(shares, 2, "from 0 to 1, or to 2 for a quality that counts against a case.")


def _check(shares: Mapping[str, Any], most: int, rule: str) -> None:
    for name, share in shares.items():
        if not isinstance(share, Real) or not 0 <= float(share) <= most:
            raise InputError(f"{name}={share!r}: {rule}")
