"""The most likely position of a board's slices, under the rules for numbers of checkers.

The network counts each slice by itself, but a side has fifteen checkers: they decide between
equally likely counts of a stack. The most likely reading with given sums is found by Viterbi's
algorithm, the probability of all such readings by the forward algorithm.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from casewright_backgammon.board_check import Off, reading_flaw
from casewright_backgammon.board_layout import position_of_counts
from casewright_backgammon.position import CHECKERS, HOME, last

Grid = NDArray[np.float64]
#: A possible reading may be at most this many times less likely than the most likely reading of
#: all: with the numbers of borne-off checkers given, and without.
ODDS_TOLD, ODDS_PRESUMED = 1000.0, 20.0
#: Share of sides that lack checkers while one is outside the home board: 0.019 of the 4,000 sides
#: of the shipped case base.
LACKING = 0.02
#: Checkers of a side on the board: 0 to 15.
_SUMS = CHECKERS + 1
#: Lower bound of the network's probabilities.
_LEAST = 1e-6


def decoded(
    likely: NDArray[np.float32], own: str, home: str, off: Off | None = None
) -> tuple[tuple[int, ...], float]:
    """Return the most likely counts of slices, and their probability.

    They are the most likely possible reading, unless it is much less likely than the most likely
    reading of all, which is returned then. A side that lacks checkers while one is not yet home has
    the low weight of its frequency.

    Args:
        likely: Probabilities of none, 1 to 15 light, 1 to 15 dark checkers, array (26, 31).
        own: The colour of the player on roll.
        home: The side where that player bears off.
        off: Checkers that this player and the other have borne off, if known.

    Returns:
        Signed counts, see ``board_layout.signed_counts``, and the probability of all of them
        together, among the readings with possible numbers of checkers.
    """
    sure = np.maximum(likely.astype(np.float64), _LEAST)
    best, ways = _most_likely(np.log(sure))
    top = float(np.log(sure.max(axis=1)).sum())
    odds = ODDS_PRESUMED if off is None else ODDS_TOLD
    likeliest: tuple[int, ...] | None = None
    weighed = -np.inf
    for state in np.argsort(-best, axis=None).tolist():
        light, dark = divmod(state, _SUMS)
        log = float(best[light, dark])
        # Weights are 1 at most, so a less likely reading cannot overtake the best so far.
        if log < max(weighed, top - np.log(odds)):
            break
        counts = _counts(_traced(ways, light, dark))
        if not reading_flaw(counts, own, home, off):
            seldom = _weights(counts, own, home, off)
            log += float(np.log(seldom[0][light]) + np.log(seldom[1][dark]))
            if log > weighed:
                likeliest, weighed = counts, log
    if likeliest is None:
        return _counts(sure.argmax(axis=1)), 0.0
    light_weights, dark_weights = _weights(likeliest, own, home, off)
    possible = (_summed(sure) * np.outer(light_weights, dark_weights)).sum()
    return likeliest, float(min(1.0, np.exp(weighed) / max(possible, 1e-300)))


def _weights(counts: tuple[int, ...], own: str, home: str, off: Off | None) -> tuple[Grid, Grid]:
    """Return the weights of 0 to 15 checkers of the light and the dark side of a reading."""
    position = position_of_counts(counts, own, home)
    sides = []
    for number, side in enumerate((position.own, position.other)):
        if off is not None:
            weights = np.zeros(_SUMS)
            weights[CHECKERS - off[number]] = 1.0
        else:
            # With all checkers at home, any number may be borne off; else hardly one.
            weights = np.full(_SUMS, LACKING if last(side) > HOME else 1.0)
            weights[CHECKERS], weights[0] = 1.0, 0.0
        sides.append(weights)
    return (sides[0], sides[1]) if own == "light" else (sides[1], sides[0])


def _counts(classes: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(int(c) if c <= CHECKERS else CHECKERS - int(c) for c in classes)


def _moved(kind: int) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Return the slices of the grid of sums before and after a class is added."""
    light, dark = (kind, 0) if kind <= CHECKERS else (0, kind - CHECKERS)
    before = (slice(0, _SUMS - light), slice(0, _SUMS - dark))
    return before, (slice(light, None), slice(dark, None))


def _most_likely(logs: Grid) -> tuple[Grid, NDArray[np.int64]]:
    """Return the log probability of the most likely reading by sums (16, 16), and its classes."""
    best = np.full((_SUMS, _SUMS), -np.inf)
    best[0, 0] = 0.0
    ways = np.zeros((len(logs), _SUMS, _SUMS), dtype=np.int64)
    for index, row in enumerate(logs):
        after = np.full_like(best, -np.inf)
        for kind, log in enumerate(row):
            source, target = _moved(kind)
            tried = best[source] + log
            better = tried > after[target]
            after[target] = np.where(better, tried, after[target])
            ways[index][target] = np.where(better, kind, ways[index][target])
        best = after
    return best, ways


def _summed(sure: Grid) -> Grid:
    """Return the total probability of the readings by sums (16, 16)."""
    whole = np.zeros((_SUMS, _SUMS))
    whole[0, 0] = 1.0
    for row in sure:
        after = np.zeros_like(whole)
        for kind, share in enumerate(row):
            source, target = _moved(kind)
            after[target] += whole[source] * share
        whole = after
    return whole


def _traced(ways: NDArray[np.int64], light: int, dark: int) -> NDArray[np.int64]:
    classes = np.zeros(len(ways), dtype=np.int64)
    for index in reversed(range(len(ways))):
        kind = int(ways[index, light, dark])
        classes[index] = kind
        if kind <= CHECKERS:
            light -= kind
        else:
            dark -= kind - CHECKERS
    return classes
