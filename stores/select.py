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
#: Number of candidates that are updated at every pick, divided by the number of picks.
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

    A pick can only raise the redundancy of other candidates, so that earlier values are upper
    bounds (accelerated greedy, Minoux 1978). Only the best candidates are updated at every pick;
    the rest are updated when one of their bounds is reached. Candidates that may be the best are
    found in single precision, and compared in double precision. The picks are as in an algorithm in
    double precision that compares values to six decimals.

    Args:
        vectors: Array (n, d) of the candidates.
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
    relevance, diversity = lambda_d * scores[order], 1 - lambda_d
    single_weights = weights.astype(np.float32)
    # Rows are in tie order, so that the first of equal values is picked.
    picked_rows, redundancies, values = [0], [0.0], [float(relevance[0])]
    # ``redundancy`` includes the first ``counted_picks`` picks.
    redundancy, counted_picks = np.full(count, -np.inf), 0
    active_count = max(64, CANDIDATES_PER_PICK * k)
    while len(picked_rows) < k:
        new_picks = vectors[order[picked_rows[counted_picks:]]] * single_weights
        similarity = (vectors @ new_picks.T).max(axis=1, initial=-np.inf)
        redundancy = np.maximum(redundancy, similarity[order])
        counted_picks = len(picked_rows)
        relevance[picked_rows] = -np.inf
        bounds = relevance - diversity * redundancy
        active_count = min(active_count, count)
        best = np.sort(np.argpartition(-bounds, active_count - 1)[:active_count])
        others_bound = -np.inf if active_count == count else float(np.delete(bounds, best).max())
        active = vectors[order[best]], weights, relevance[best], redundancy[best], diversity
        earlier_vectors = vectors[order[picked_rows]] * weights
        limits = k - counted_picks, others_bound
        for index, new_redundancy, value in _best_picks(*active, earlier_vectors, *limits):
            picked_rows.append(int(best[index]))
            redundancies.append(new_redundancy)
            values.append(value)
        # Without a pick, too many candidates have almost equal values: update more candidates.
        active_count *= 4 if len(picked_rows) == counted_picks else 1
    return list(map(RowPick, order[picked_rows].tolist(), redundancies, values))


def _tie_order(scores: Floats, ids: Sequence[str]) -> NDArray[np.int64]:
    rounded_scores = np.round(scores, DECIMALS)
    order = np.argsort(-rounded_scores, kind="stable")
    equals_next = np.diff(rounded_scores[order]) == 0
    # Only runs of equal scores, which are few, are sorted by id.
    edges = np.flatnonzero(np.diff(equals_next, prepend=False, append=False))
    for start, end in zip(edges[::2], edges[1::2] + 1, strict=True):
        order[start:end] = sorted(order[start:end], key=lambda row: ids[row])
    return order


def _best_picks(
    rows: Rows,
    weights: Floats,
    relevance: Floats,
    redundancy: Floats,
    diversity: float,
    earlier_vectors: Floats,
    limit: int,
    others_bound: float,
) -> Iterator[tuple[int, float, float]]:
    """Yield index, redundancy and value of at most ``limit`` picks from the best candidates.

    The picks end before a value that is not above ``others_bound``, the bound of all other
    candidates. ``earlier_vectors`` (picks, d) are the weighted vectors of the earlier picks.
    """
    single_weights = weights.astype(np.float32)
    pick_vectors = np.concatenate([earlier_vectors, np.empty((limit, earlier_vectors.shape[1]))])
    for size in range(len(earlier_vectors), len(pick_vectors)):
        bounds = relevance - diversity * redundancy
        lower_bound = bounds.max() - 2 * diversity * SLACK - 10.0**-DECIMALS
        contenders = np.flatnonzero(bounds >= max(lower_bound, np.finfo(np.float64).min))
        if not len(contenders):
            return
        redundancies = (rows[contenders].astype(np.float64) @ pick_vectors[:size].T).max(axis=1)
        values = relevance[contenders] - diversity * redundancies
        best = int(np.argmax(np.round(values, DECIMALS)))
        if values[best] <= others_bound + diversity * SLACK + 10.0**-DECIMALS:
            return
        index = int(contenders[best])
        yield index, float(redundancies[best]), float(values[best])
        pick_vectors[size] = rows[index] * weights
        relevance[index] = -np.inf
        redundancy = np.maximum(redundancy, rows @ (rows[index] * single_weights))


@dataclass(frozen=True, slots=True)
class Pick:
    """A selected hit, whose score includes the quality bias.

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
        candidates: Number of candidates.
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
        hits: Candidates of one search; the scores include the quality bias of ``lambda_b``.
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
    _check(shares, 1, "the share of the relevance is from 0 to 1.")


def check_bias(**shares: Any) -> None:
    """Raise ``InputError`` for a value that is not a number from 0 to 2."""
    _check(shares, 2, "from 0 to 1, or to 2 for a quality that counts against a case.")


def _check(shares: Mapping[str, Any], maximum: int, rule: str) -> None:
    for name, share in shares.items():
        if not isinstance(share, Real) or not 0 <= float(share) <= maximum:
            raise InputError(f"{name}={share!r}: {rule}")
