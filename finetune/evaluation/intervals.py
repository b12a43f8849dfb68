"""Confidence intervals of shares, and of figures over resampled items."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: The quantile of the normal distribution for a 95 % interval.
Z = 1.959963984540054
#: Number of resamples of a bootstrap.
RESAMPLE_COUNT = 2000
#: Maximum number of weights in one array of ``Resamples.weights``.
_MAX_WEIGHTS = 2_000_000


def wilson(right: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927); from 0 to 1 if the count is 0."""
    if not count:
        return 0.0, 1.0
    share, square = right / count, Z * Z / count
    centre = (share + square / 2) / (1 + square)
    half_width = Z / (1 + square) * math.sqrt(share * (1 - share) / count + square / (4 * count))
    # A share of 0 has the lower end 0, and a share of 1 the upper end 1; rounding could move them.
    low = 0.0 if right == 0 else max(0.0, centre - half_width)
    return low, 1.0 if right == count else min(1.0, centre + half_width)


def f1_interval(name: str, gold: Sequence[str], predicted: Sequence[str]) -> tuple[float, float]:
    """Return the 95 % interval of a class's F1, from the gold and predicted class of each item.

    Among the items with this gold or predicted class, the share of right items is
    ``F* = F1 / (2 - F1)`` (Hand, Christen and Kirielle 2021). Wilson's interval of that share
    stays wide if all or none of a few items are right; a bootstrap interval would have no width.
    """
    pairs = [pair for pair in zip(gold, predicted, strict=True) if name in pair]
    low, high = (2 * end / (1 + end) for end in wilson(pairs.count((name, name)), len(pairs)))
    return low, high


@dataclass(frozen=True, slots=True)
class Resamples:
    """The Bayesian bootstrap (Rubin 1981): ``count`` reproducible resamples of some items.

    Every item has a random weight above 0 in every resample, so no resample lacks a rare class. If
    two planners have the same resamples, their figures are paired. Items with the same number in
    ``groups``, such as near-duplicates, have equal weights; by default, each item is its own group.
    """

    item_count: int
    groups: Sequence[int] = ()
    seed: int = 0
    count: int = RESAMPLE_COUNT

    def weights(self) -> Iterator[Floats]:
        """Yield arrays (resamples, items) of weights whose mean is about 1."""
        group_of = np.unique(self.groups, return_inverse=True)[1] if len(self.groups) else None
        group_count = self.item_count if group_of is None else int(group_of.max()) + 1
        rng = np.random.default_rng(self.seed)
        max_rows = max(1, _MAX_WEIGHTS // max(1, self.item_count))
        for start in range(0, self.count, max_rows):
            row_count = min(max_rows, self.count - start)
            weights = rng.dirichlet(np.ones(group_count), size=row_count) * group_count
            yield weights if group_of is None else weights[:, group_of]


def shares(values: Sequence[bool], resamples: Resamples) -> Floats:
    """Return the share of true values in each resample, array (resamples,)."""
    numbers = np.asarray(values, dtype=np.float64)
    return np.concatenate([w @ numbers / w.sum(axis=1) for w in resamples.weights()])


def f1_scores(
    gold: Sequence[str], predicted: Sequence[str], classes: Sequence[str], resamples: Resamples
) -> Floats:
    """Return the F1 of ``classes``, array (resamples, classes); ``gold`` must have every class."""
    is_gold = np.array([[name == c for c in classes] for name in gold], dtype=np.float64)
    is_predicted = np.array([[name == c for c in classes] for name in predicted], dtype=np.float64)
    # F1 = 2PR / (P + R) = 2 hits / (items of the class + predictions of the class).
    hits, total = is_gold * is_predicted, is_gold + is_predicted
    return np.concatenate([2 * (w @ hits) / (w @ total) for w in resamples.weights()])


def percentile_interval(values: Floats) -> tuple[float, float]:
    """Return the 95 % percentile interval of a figure over resamples."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
