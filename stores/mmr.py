"""Maximal marginal relevance over arrays, the picks of the greedy algorithm without its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.stores.hit import DECIMALS

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
#: What single precision may be wrong by in a similarity of unit vectors, and more.
SLACK = 1e-5
#: Half of the last decimal that values are compared to, and more: near enough to be equal.
NEAR = 10.0**-DECIMALS
#: Candidates that are looked at, a pick; and those that are brought up to date together.
WIDTH, CHUNK = 4, 16


@dataclass(frozen=True, slots=True)
class Marginal:
    """One pick: which candidate, and the numbers that it was picked by.

    Attributes:
        row: Its row.
        redundancy: Its highest similarity to what was picked before it; 0 for the first.
        value: ``lambda_d * score - (1 - lambda_d) * redundancy``.
    """

    row: int
    redundancy: float
    value: float


def mmr(
    vectors: NDArray[np.float32], scores: Floats, ids: Sequence[str], k: int, lambda_d: float
) -> list[Marginal]:
    """Pick k candidates greedily by relevance less redundancy (RAGSys, Algorithm 1).

    A pick can only raise the redundancy of the others, so a value once computed is a bound from
    above: a candidate is brought up to date only while its bound reaches the best value
    (accelerated greedy, Minoux 1978). The picks are those of computing everything in double
    precision and comparing values to six decimals.

    Args:
        vectors: Array (n, d), in which the dot product of two rows is their similarity.
        scores: Array (n), relevance with the quality bias inside.
        ids: Of the candidates; equal values are told apart by score, then id.
        k: How many to pick; fewer come back where n is smaller.
        lambda_d: Share of the relevance, from 0 to 1.
    """
    k = min(k, len(ids))
    if k <= 0:
        return []
    order = tie_order(scores, ids)
    first = int(order[0])
    picks = [Marginal(first, 0.0, lambda_d * float(scores[first]))]
    # After the first pick, what points away from it gains: all bounds are made anew.
    near = vectors @ vectors[first]
    bounds = (lambda_d * scores - (1 - lambda_d) * (near - SLACK))[order]
    bounds[0] = -np.inf
    width = WIDTH * k
    while len(picks) < k:
        width = min(WIDTH * width, len(order))
        chosen = np.argpartition(-bounds, width - 1)[:width]
        rest = np.partition(bounds, -width - 1)[-width - 1] if width < len(order) else -np.inf
        # In the order of ties: the first of equal values is the one to take.
        rows = order[np.sort(chosen)]
        picks = _greedy(vectors, scores, rows, picks, k, lambda_d, float(rest))
    return picks


def tie_order(scores: Floats, ids: Sequence[str]) -> Places:
    """Return the rows by score to six decimals, best first, and by id where that is equal."""
    rounded = np.round(scores, DECIMALS)
    order = np.argsort(-rounded, kind="stable")
    same = np.diff(rounded[order]) == 0
    # Only runs of equal scores are sorted by id: there are few.
    edges = np.flatnonzero(np.diff(same, prepend=False, append=False))
    for start, end in zip(edges[::2], edges[1::2] + 1, strict=True):
        order[start:end] = sorted(order[start:end], key=lambda row: ids[row])
    return order


def _greedy(
    vectors: NDArray[np.float32],
    scores: Floats,
    rows: Places,
    picks: list[Marginal],
    k: int,
    lambda_d: float,
    rest: float,
) -> list[Marginal]:
    """Pick on among some rows; stop before one whose value the other rows' bound may reach."""
    picks = list(picks)
    units = vectors[rows].astype(np.float64)
    relevance, spread = lambda_d * scores[rows], 1 - lambda_d
    before = [pick.row for pick in picks]
    picked = np.empty((k, units.shape[1]))
    picked[: len(before)] = vectors[before]
    redundancy = (units @ picked[: len(before)].T).max(axis=1)
    bounds = relevance - spread * redundancy
    bounds[np.isin(rows, before)] = -np.inf
    # How many picks a row's redundancy counts.
    counted = np.full(len(rows), len(before))
    while len(picks) < min(k, len(rows)):
        size, best = len(picks), -np.inf
        while True:
            stale = np.flatnonzero((bounds >= best - NEAR) & (counted < size) & (bounds > -np.inf))
            if not len(stale):
                break
            if len(stale) > CHUNK:
                stale = stale[np.argpartition(-bounds[stale], CHUNK)[:CHUNK]]
            since = counted[stale].min()
            near = (units[stale] @ picked[since:size].T).max(axis=1)
            redundancy[stale] = np.maximum(redundancy[stale], near)
            bounds[stale] = relevance[stale] - spread * redundancy[stale]
            counted[stale] = size
            best = max(best, bounds[counted == size].max())
        fresh = np.where(counted == size, np.round(bounds, DECIMALS), -np.inf)
        place = int(np.argmax(fresh))
        if fresh[place] <= rest + NEAR:
            break
        picks.append(Marginal(int(rows[place]), float(redundancy[place]), float(bounds[place])))
        picked[size] = units[place]
        bounds[place] = -np.inf
    return picks
