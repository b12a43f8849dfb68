"""Maximal marginal relevance over arrays, the picks of the greedy algorithm without its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.stores.hit import DECIMALS

Floats = NDArray[np.float64]
Rows = NDArray[np.float32]
Places = NDArray[np.int64]
#: What single precision may be wrong by in a similarity of unit vectors, and more.
SLACK = 1e-5
#: Candidates that are kept up to date at every pick, for each pick that is to be made.
WIDTH = 4


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
    vectors: Rows, weights: Floats, scores: Floats, ids: Sequence[str], k: int, lambda_d: float
) -> list[Marginal]:
    """Pick k candidates greedily by relevance less redundancy (RAGSys, Algorithm 1).

    A pick can only raise the redundancy of the others, so a value once computed is a bound from
    above (accelerated greedy, Minoux 1978). Only the best candidates are brought up to date at
    every pick; the others all at once, when a bound of theirs is reached. Single precision says
    which candidates may be the best, double precision which of them is: the picks are those of
    computing everything in double precision and comparing values to six decimals.

    Args:
        vectors: Array (n, d), of the candidates.
        weights: Array (d): the similarity of two rows is the sum of their products times these.
        scores: Array (n), relevance with the quality bias inside.
        ids: Of the candidates; equal values are told apart by score, then id.
        k: How many to pick; fewer come back where n is smaller.
        lambda_d: Share of the relevance, from 0 to 1.
    """
    count, k = len(ids), min(k, len(ids))
    if k <= 0:
        return []
    order = tie_order(scores, ids)
    relevance, spread = lambda_d * scores[order], 1 - lambda_d
    light = weights.astype(np.float32)
    # In the order of ties, whose first of equal values is the one to take.
    picked, redundancies, values = [0], [0.0], [float(relevance[0])]
    redundancy, counted, width = np.full(count, -np.inf), 0, max(64, WIDTH * k)
    while len(picked) < k:
        fresh = vectors[order[picked[counted:]]] * light
        near = (vectors @ fresh.T).max(axis=1, initial=-np.inf)
        redundancy, counted = np.maximum(redundancy, near[order]), len(picked)
        relevance[picked] = -np.inf
        bounds = relevance - spread * redundancy
        width = min(width, count)
        best = np.sort(np.argpartition(-bounds, width - 1)[:width])
        rest = -np.inf if width == count else float(np.delete(bounds, best).max())
        rows = vectors[order[best]]
        active = _Active(rows, weights, relevance[best], redundancy[best], bounds[best])
        before = vectors[order[picked]] * weights
        for place, near_pick, value in active.picks(spread, before, k - counted, rest):
            picked.append(int(best[place]))
            redundancies.append(near_pick)
            values.append(value)
        # Too many are as good as each other to tell them apart from so few.
        width *= 4 if len(picked) == counted else 1
    made = zip(order[picked].tolist(), redundancies, values, strict=True)
    return [Marginal(*one) for one in made]


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


@dataclass(slots=True)
class _Active:
    """The candidates that are kept up to date at every pick, in the order of ties."""

    rows: Rows
    weights: Floats
    relevance: Floats
    redundancy: Floats
    values: Floats

    def picks(
        self, spread: float, before: Floats, most: int, rest: float
    ) -> list[tuple[int, float, float]]:
        """Pick on; stop before a pick that one of the other candidates may beat or equal.

        Args:
            spread: Share of the redundancy.
            before: What is picked already, array (picks, d), times the weights.
            most: How many to pick.
            rest: Highest value that another candidate may have.

        Returns:
            Place among these candidates, redundancy and value of each pick.
        """
        made: list[tuple[int, float, float]] = []
        light = self.weights.astype(np.float32)
        picked = np.concatenate([before, np.empty((most, before.shape[1]))])
        while len(made) < most:
            size = len(before) + len(made)
            floor = self.values.max() - 2 * spread * SLACK - 10.0**-DECIMALS
            near = np.flatnonzero(self.values >= max(floor, np.finfo(np.float64).min))
            if not len(near):
                break
            exact = (self.rows[near].astype(np.float64) @ picked[:size].T).max(axis=1)
            values = self.relevance[near] - spread * exact
            best = int(np.argmax(np.round(values, DECIMALS)))
            if values[best] <= rest + spread * SLACK + 10.0**-DECIMALS:
                break
            place = int(near[best])
            made.append((place, float(exact[best]), float(values[best])))
            picked[size] = self.rows[place] * self.weights
            self.relevance[place] = -np.inf
            similarity = self.rows @ (self.rows[place] * light)
            self.redundancy = np.maximum(self.redundancy, similarity)
            self.values = self.relevance - spread * self.redundancy
        return made
