"""Selects cases by maximal marginal relevance with quality bias (RAGSys, Algorithm 1).

``mmr`` works on arrays; it returns the picks of the plain greedy algorithm in less time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores.hit import DECIMALS, Hit
from casewright.stores.schema import CaseSchema

Floats = NDArray[np.float64]
Rows = NDArray[np.float32]
#: Maximum error of a similarity of unit vectors in single precision.
SLACK = 1e-5
#: Number of active candidates for each pick that is requested; see ``mmr``.
CANDIDATES_PER_PICK = 4


class RowPick(NamedTuple):
    """A pick of ``mmr``: the row of a candidate; redundancy and value are as in ``Pick``."""

    row: int
    redundancy: float
    value: float


def mmr(
    vectors: Rows, weights: Floats, scores: Floats, ids: Sequence[str], k: int, lambda_d: float
) -> list[RowPick]:
    """Pick k candidates greedily by score minus redundancy (RAGSys, Algorithm 1).

    A pick can only raise the redundancy of other candidates. So the value that a candidate had
    before a pick is an upper bound of its value after the pick (accelerated greedy, Minoux 1978).
    At every pick, only the best candidates (the active ones) are updated; the others are updated
    when one of their bounds reaches the best value. Contenders for a pick are found in single
    precision and compared in double precision, to six decimals.

    Args:
        vectors: The candidates' vectors, array (n, d).
        weights: Array (d): the similarity of two rows is the weighted sum of their products.
        scores: Array (n) of ``Hit.score``: the relevance with the quality bias.
        ids: The candidates' ids; ties are broken by score, then id.
        k: The number of picks, at most n.
        lambda_d: Share of the score, from 0 to 1.
    """
    count, k = len(ids), min(k, len(ids))
    if k <= 0:
        return []
    order = _tie_order(scores, ids)
    weighted_scores, diversity_weight = lambda_d * scores[order], 1 - lambda_d
    single_weights = weights.astype(np.float32)
    # ``picked`` and ``active`` are positions in ``order``: the first of equal values is picked.
    picked, redundancies, values = [0], [0.0], [float(weighted_scores[0])]
    # ``redundancy`` is the highest similarity to the first ``counted_picks`` picks.
    redundancy, counted_picks = np.full(count, -np.inf), 0
    active_count = max(64, CANDIDATES_PER_PICK * k)
    while len(picked) < k:
        new_picks = vectors[order[picked[counted_picks:]]] * single_weights
        similarity = (vectors @ new_picks.T).max(axis=1, initial=-np.inf)
        redundancy = np.maximum(redundancy, similarity[order])
        counted_picks = len(picked)
        weighted_scores[picked] = -np.inf
        bounds = weighted_scores - diversity_weight * redundancy
        active_count = min(active_count, count)
        active = np.sort(np.argpartition(-bounds, active_count - 1)[:active_count])
        others_bound = -np.inf if active_count == count else float(np.delete(bounds, active).max())
        arrays = vectors[order[active]], weights, weighted_scores[active], redundancy[active]
        earlier_vectors = vectors[order[picked]] * weights
        settings = diversity_weight, k - counted_picks, others_bound
        for index, new_redundancy, value in _best_picks(*arrays, earlier_vectors, *settings):
            picked.append(int(active[index]))
            redundancies.append(new_redundancy)
            values.append(value)
        # If nothing was picked, too many values are almost equal: update more candidates.
        active_count *= 4 if len(picked) == counted_picks else 1
    return list(map(RowPick, order[picked].tolist(), redundancies, values))


def _tie_order(scores: Floats, ids: Sequence[str]) -> NDArray[np.int64]:
    """Return the rows by score, then id."""
    rounded_scores = np.round(scores, DECIMALS)
    order = np.argsort(-rounded_scores, kind="stable")
    equals_next = np.diff(rounded_scores[order]) == 0
    # Only runs of equal scores, which are few, are sorted by id.
    edges = np.flatnonzero(np.diff(equals_next, prepend=False, append=False))
    for start, end in zip(edges[::2], edges[1::2] + 1, strict=True):
        order[start:end] = sorted(order[start:end], key=lambda row: ids[row])
    return order


def _best_picks(
    vectors: Rows,
    weights: Floats,
    weighted_scores: Floats,
    redundancy: Floats,
    earlier_vectors: Floats,
    diversity_weight: float,
    limit: int,
    others_bound: float,
) -> Iterator[tuple[int, float, float]]:
    """Yield index, redundancy and value of at most ``limit`` picks from the active candidates.

    ``others_bound`` is the highest bound of the other candidates; a pick's value is above it.
    ``earlier_vectors`` (picks, d) are the weighted vectors of the earlier picks.
    """
    single_weights = weights.astype(np.float32)
    pick_vectors = np.concatenate([earlier_vectors, np.empty((limit, earlier_vectors.shape[1]))])
    for size in range(len(earlier_vectors), len(pick_vectors)):
        bounds = weighted_scores - diversity_weight * redundancy
        lower_bound = bounds.max() - 2 * diversity_weight * SLACK - 10.0**-DECIMALS
        # A candidate that was picked has the bound -inf.
        contenders = np.flatnonzero(bounds >= max(lower_bound, np.finfo(np.float64).min))
        if not len(contenders):
            return
        redundancies = (vectors[contenders].astype(np.float64) @ pick_vectors[:size].T).max(axis=1)
        values = weighted_scores[contenders] - diversity_weight * redundancies
        best = int(np.argmax(np.round(values, DECIMALS)))
        if values[best] <= others_bound + diversity_weight * SLACK + 10.0**-DECIMALS:
            return
        index = int(contenders[best])
        yield index, float(redundancies[best]), float(values[best])
        pick_vectors[size] = vectors[index] * weights
        weighted_scores[index] = -np.inf
        redundancy = np.maximum(redundancy, vectors @ (vectors[index] * single_weights))


@dataclass(frozen=True, slots=True)
class Pick:
    """A selected hit; the hit's score includes the quality bias.

    Attributes:
        redundancy: The highest similarity to an earlier pick; 0 for the first pick.
        value: ``lambda_d * score - (1 - lambda_d) * redundancy``.
    """

    hit: Hit
    redundancy: float
    value: float


@dataclass(frozen=True, slots=True)
class Selection:
    """A selection from a store.

    Attributes:
        picks: The picks, in order.
        certified: True if the picks are proved to equal a selection from all cases.
        candidates: Number of cases from which the picks were selected.
        searches: Number of searches, including those of the proof.
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
    """Pick k of the hits, each relevant and unlike the picks before it.

    Args:
        hits: Candidates of one search; their scores include the search's quality bias.
        k: The number of picks, at most the number of hits.
        lambda_d: Share of the score, from 0 (only diversity) to 1 (no diversity).
        weights: The weights of the search, which also apply to redundancy.

    Returns:
        Picks in order; ties are broken by score, then id.

    Raises:
        InputError: ``lambda_d`` is not from 0 to 1, or ``k`` is below 0.
    """
    check_selection(k, lambda_d)
    if not hits:
        return []
    vectors, scores = np.stack([hit.vector for hit in hits]), np.array([hit.score for hit in hits])
    dimension_weights = np.repeat(schema.weights(weights), [f.dimension for f in schema.facets])
    picks = mmr(vectors, dimension_weights, scores, [hit.case.id for hit in hits], k, lambda_d)
    return [Pick(hits[row], redundancy, value) for row, redundancy, value in picks]


def check_selection(k: int, lambda_d: float) -> None:
    """Raise ``InputError`` for invalid settings of a selection."""
    check_counts(0, k=k)
    check_share(lambda_d=lambda_d)


def check_counts(minimum: int, **counts: Any) -> None:
    """Raise ``InputError`` for a value that is not an integer of at least ``minimum``."""
    for name, count in counts.items():
        if not isinstance(count, Integral) or count < minimum:
            raise InputError(f"{name}={count!r}: give a whole number, at least {minimum}.")


def check_share(**shares: Any) -> None:
    """Raise ``InputError`` for a value that is not a number from 0 to 1."""
    _check(shares, 1, "give a number from 0 to 1.")


def check_bias(**shares: Any) -> None:
    """Raise ``InputError`` for a value that is not a number from 0 to 2."""
    _check(shares, 2, "give a number from 0 to 1, or up to 2 to let quality count against a case.")


def _check(shares: Mapping[str, Any], maximum: int, rule: str) -> None:
    for name, share in shares.items():
        if not isinstance(share, Real) or not 0 <= float(share) <= maximum:
            raise InputError(f"{name}={share!r}: {rule}")
