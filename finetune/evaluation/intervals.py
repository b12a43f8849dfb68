"""Confidence intervals: of shares, and of whatever is figured from resampled items."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: The normal distribution's quantile of an interval of 95 %.
Z = 1.959963984540054
#: Resamples of a bootstrap.
RESAMPLES = 2000
#: Numbers of a matrix of resamples that are held at once.
_HELD = 2_000_000


def wilson(right: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927); of nothing, from 0 to 1.

    Args:
        right: How many were right.
        count: Of how many; at least ``right``.
    """
    if not count:
        return 0.0, 1.0
    share, square = right / count, Z * Z / count
    middle = (share + square / 2) / (1 + square)
    half = Z / (1 + square) * math.sqrt(share * (1 - share) / count + square / (4 * count))
    # Its ends are exact where all or none are right; sums of floats are not.
    return (
        0.0 if right == 0 else max(0.0, middle - half),
        1.0 if right == count else min(1.0, middle + half),
    )


@dataclass(frozen=True, slots=True)
class Resamples:
    """Resamples with replacement, the same ones whenever they are asked for (Efron 1979).

    Figures of two planners over the same resamples are paired: each resample holds the same items
    for both.

    Attributes:
        items: Number of items.
        groups: A number an item; items of one group, for example near-duplicates, are drawn
            together. Each item is its own group where there are none.
        seed: Of the draws.
        count: How many resamples.
    """

    items: int
    groups: Sequence[int] = ()
    seed: int = 0
    count: int = RESAMPLES

    def weights(self) -> Iterator[Floats]:
        """Yield how often each item is drawn, in arrays (resamples, items)."""
        group_of = np.unique(self.groups, return_inverse=True)[1] if len(self.groups) else None
        drawn = self.items if group_of is None else int(group_of.max()) + 1
        draw = np.random.default_rng(self.seed)
        step = max(1, _HELD // max(1, self.items))
        for start in range(0, self.count, step):
            size = min(step, self.count - start)
            made = draw.multinomial(drawn, np.full(drawn, 1 / drawn), size=size).astype(np.float64)
            yield made if group_of is None else made[:, group_of]


def shares(values: Sequence[bool], resamples: Resamples) -> Floats:
    """Return the share that is true in each resample, array (resamples,)."""
    held = np.asarray(values, dtype=np.float64)
    return np.concatenate([w @ held / w.sum(axis=1) for w in resamples.weights()])


def f1_scores(
    gold: Sequence[str], predicted: Sequence[str], classes: Sequence[str], resamples: Resamples
) -> Floats:
    """Return each class's F1 in each resample, array (resamples, classes).

    NaN where a resample holds no item of the class.
    """
    is_gold = np.array([[name == c for c in classes] for name in gold], dtype=np.float64)
    claimed = np.array([[name == c for c in classes] for name in predicted], dtype=np.float64)
    found = []
    for weights in resamples.weights():
        there = weights @ is_gold
        # 2PR / (P + R) with P = hits / claims and R = hits / items of the class.
        total = there + weights @ claimed
        hits = weights @ (is_gold * claimed)
        found.append(np.where(there > 0, 2 * hits / np.maximum(total, 1), np.nan))
    return np.concatenate(found)


def macro(scores: Floats) -> Floats:
    """Return the mean over the classes that a resample holds, array (resamples,)."""
    return np.asarray(np.nanmean(scores, axis=1), dtype=np.float64)


def percentile_interval(values: Floats) -> tuple[float, float]:
    """Return the 95 % percentile interval of a figure over resamples, NaN left out."""
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)
