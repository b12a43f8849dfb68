"""Confidence intervals of shares, and of figures over resampled items."""

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
    """Return the 95 % interval of a share (Wilson 1927); of nothing, from 0 to 1."""
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


def f1_interval(name: str, gold: Sequence[str], predicted: Sequence[str]) -> tuple[float, float]:
    """Return the 95 % interval of a class's F1, by the gold and the predicted class of each item.

    Among the items whose gold or predicted class is this class, the share of right items is
    ``F* = F1 / (2 - F1)`` (Hand, Christen and Kirielle 2021). The interval is Wilson's for that
    share: unlike a bootstrap's, it stays wide if all or no items of a small number are right.
    """
    pairs = [pair for pair in zip(gold, predicted, strict=True) if name in pair]
    low, high = (2 * end / (1 + end) for end in wilson(pairs.count((name, name)), len(pairs)))
    return low, high


@dataclass(frozen=True, slots=True)
class Resamples:
    """Weights of the Bayesian bootstrap (Rubin 1981), the same at every call.

    Items are weighed at random rather than drawn, so that every item has some weight: no resample
    lacks a class that has few. Figures of two planners over the same resamples are paired.

    Attributes:
        items: Number of items.
        groups: A number an item: items of one group, such as near-duplicates, weigh alike. Each
            item is its own group where there are none.
        seed: Of the draws.
        count: Number of resamples.
    """

    items: int
    groups: Sequence[int] = ()
    seed: int = 0
    count: int = RESAMPLES

    def weights(self) -> Iterator[Floats]:
        """Yield each item's weight, on average about 1, in arrays (resamples, items)."""
        group_of = np.unique(self.groups, return_inverse=True)[1] if len(self.groups) else None
        drawn = self.items if group_of is None else int(group_of.max()) + 1
        draw = np.random.default_rng(self.seed)
        step = max(1, _HELD // max(1, self.items))
        for start in range(0, self.count, step):
            size = min(step, self.count - start)
            result = draw.dirichlet(np.ones(drawn), size=size) * drawn
            yield result if group_of is None else result[:, group_of]


def shares(values: Sequence[bool], resamples: Resamples) -> Floats:
    """Return the share that is true in each resample, array (resamples,)."""
    held = np.asarray(values, dtype=np.float64)
    return np.concatenate([w @ held / w.sum(axis=1) for w in resamples.weights()])


def f1_scores(
    gold: Sequence[str], predicted: Sequence[str], classes: Sequence[str], resamples: Resamples
) -> Floats:
    """Return each class's F1 in each resample, array (resamples, classes).

    Each of the classes is the gold class of at least one item.
    """
    is_gold = np.array([[name == c for c in classes] for name in gold], dtype=np.float64)
    claimed = np.array([[name == c for c in classes] for name in predicted], dtype=np.float64)
    results = []
    for weights in resamples.weights():
        # 2PR / (P + R) with P = hits / claims and R = hits / items of the class.
        total = weights @ is_gold + weights @ claimed
        results.append(2 * (weights @ (is_gold * claimed)) / total)
    return np.concatenate(results)


def percentile_interval(values: Floats) -> tuple[float, float]:
    """Return the 95 % percentile interval of a figure over resamples."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
