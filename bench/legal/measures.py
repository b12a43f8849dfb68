"""F1@k with two parent cases (CBR-RAG, section 6), and what it is held against.

With h of a question's two parents among the first k cases, precision is h/k and recall h/2, so
that F1 is 2h/(k + 2). A parent's place is its rank, counted from 1; where it was not retrieved,
the rank is larger than every k.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.bench.legal.data import SEED

#: How many cases are retrieved, in the paper's table.
KS = (1, 3, 5, 7, 9, 13, 19, 23, 37)
#: The paper's weightings of question, support and entities; the last is its best.
WEIGHTINGS = (
    (1.0, 0.0, 0.0),
    (0.0, 1.0, 0.0),
    (0.0, 0.0, 1.0),
    (0.20, 0.40, 0.40),
    (0.30, 0.40, 0.30),
    (0.25, 0.40, 0.35),
)
PAPERS_BEST = WEIGHTINGS[-1]
#: How often labels are shuffled, and questions drawn for an interval.
SHUFFLES, RESAMPLES = 20, 10_000

Weighting = tuple[float, float, float]
Ranks = NDArray[np.int64]
Scores = NDArray[np.float64]


def f1_at_k(ranks: Ranks) -> Scores:
    """Return F1@k of every question at every k of the table.

    Args:
        ranks: Array (questions, 2): the ranks of each question's parents.

    Returns:
        Array (questions, len(KS)).
    """
    ks = np.array(KS)
    hits = (ranks[:, :, None] <= ks).sum(axis=1)
    scores: Scores = 2 * hits / (ks + 2)
    return scores


def random_f1_at_k(cases: int) -> Scores:
    """Return the expected F1@k of cases in random order, array (len(KS),).

    Of two parents among n cases, 2k/n are expected among the first k.
    """
    ks = np.array(KS)
    expected: Scores = 2 * (2 * np.minimum(ks, cases) / cases) / (ks + 2)
    return expected


def strangers(count: int) -> list[list[int]]:
    """Return, for every shuffle, whose labels each of ``count`` questions is given: never its own.

    Raises:
        ValueError: There is but one question.
    """
    if count < 2:
        raise ValueError("labels of one question cannot be shuffled")
    rng = random.Random(SEED)
    given = []
    for _ in range(SHUFFLES):
        circle = list(range(count))
        rng.shuffle(circle)
        after = dict(zip(circle, circle[1:] + circle[:1], strict=True))
        given.append([after[question] for question in range(count)])
    return given


def shuffled_f1_at_k(ranks_of: Any, count: int) -> Scores:
    """Return the mean F1@k where each question has another one's labels, array (len(KS),).

    Args:
        ranks_of: Called with the question whose labels each question is given; returns ranks,
            array (questions, 2).
        count: How many questions there are.
    """
    trials = [f1_at_k(ranks_of(given)).mean(axis=0) for given in strangers(count)]
    mean: Scores = np.mean(trials, axis=0)
    return mean


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean of paired differences, with its 95 % interval.

    Attributes:
        mean: Of the differences.
        low: Lower end.
        high: Upper end.
    """

    mean: float
    low: float
    high: float


def paired_difference(ours: Sequence[Scores], theirs: Sequence[Scores]) -> Difference:
    """Return how much better the one is than the other, by a paired bootstrap (percentiles).

    Questions are drawn anew within each set; of the sets, the mean counts.

    Args:
        ours: For each set, one score a question.
        theirs: The same questions' scores of the other.
    """
    from scipy.stats import bootstrap

    differences = [np.asarray(a) - np.asarray(b) for a, b in zip(ours, theirs, strict=True)]

    def macro(*sets: Scores, axis: int = -1) -> Any:
        return np.mean([part.mean(axis=axis) for part in sets], axis=0)

    mean = float(macro(*differences))
    if all((part == part[0]).all() for part in differences):
        return Difference(mean, mean, mean)
    found = bootstrap(
        differences,
        macro,
        n_resamples=RESAMPLES,
        vectorized=True,
        batch=500,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    return Difference(mean, float(found.low), float(found.high))
