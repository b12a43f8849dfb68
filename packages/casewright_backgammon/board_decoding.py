"""Decoding of the slices of a board to the most likely position with possible numbers of checkers.

The network predicts the count of each slice independently. But a side has fifteen checkers, so the
sum over the slices decides between equally likely counts. Viterbi's algorithm finds the most likely
reading for each pair of sums, of light and of dark checkers; the forward algorithm computes the
total probability of the readings with these sums.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from casewright_backgammon.board_check import Off, reading_flaw
from casewright_backgammon.board_layout import position_of_counts
from casewright_backgammon.position import CHECKERS, HOME, furthest_point

Grid = NDArray[np.float64]
#: Maximum ratio of the probabilities of the most likely reading and of the returned possible
#: reading: with and without given numbers of borne-off checkers.
ODDS_KNOWN, ODDS_UNKNOWN = 1000.0, 20.0
#: Frequency of unlikely sides (``board_check.is_unlikely``); it is 0.019 of the 4,000 sides in the
#: shipped case base.
UNLIKELY_SHARE = 0.02
#: Number of possible sums of a side's checkers on the board: 0 to 15.
_SUMS = CHECKERS + 1
#: Lower bound of the network's probabilities.
_MIN_PROBABILITY = 1e-6


def decode(
    predicted: NDArray[np.float32], own: str, home: str, off: Off | None = None
) -> tuple[tuple[int, ...], float]:
    """Return the most likely counts of checkers in the slices, and their probability.

    The result is the most likely possible reading, or an impossible reading if that is much more
    likely. An unlikely side has the weight ``UNLIKELY_SHARE``. For the other arguments see
    ``BoardReader.read``.

    Args:
        predicted: Probabilities of none, 1 to 15 light, 1 to 15 dark checkers, array (26, 31).

    Returns:
        Signed counts, see ``board_layout.signed_counts``, and the probability of this reading among
        all readings with possible numbers of checkers.
    """
    probabilities = np.maximum(predicted.astype(np.float64), _MIN_PROBABILITY)
    log_by_sums, pointers = _most_likely(np.log(probabilities))
    top_log = float(np.log(probabilities.max(axis=1)).sum())
    odds = ODDS_UNKNOWN if off is None else ODDS_KNOWN
    best_counts: tuple[int, ...] | None = None
    best_log = -np.inf
    for state in np.argsort(-log_by_sums, axis=None).tolist():
        light, dark = divmod(state, _SUMS)
        log = float(log_by_sums[light, dark])
        # Weights are at most 1, so a less likely reading cannot overtake the best reading so far.
        if log < max(best_log, top_log - np.log(odds)):
            break
        counts = _counts(_trace_back(pointers, light, dark))
        if not reading_flaw(counts, own, home, off):
            weights = _weights(counts, own, home, off)
            log += float(np.log(weights[0][light]) + np.log(weights[1][dark]))
            if log > best_log:
                best_counts, best_log = counts, log
    if best_counts is None:
        return _counts(probabilities.argmax(axis=1)), 0.0
    light_weights, dark_weights = _weights(best_counts, own, home, off)
    possible = (_total_probabilities(probabilities) * np.outer(light_weights, dark_weights)).sum()
    return best_counts, float(min(1.0, np.exp(best_log) / max(possible, 1e-300)))


def _weights(counts: tuple[int, ...], own: str, home: str, off: Off | None) -> tuple[Grid, Grid]:
    """Return the weights of 0 to 15 checkers on the board, for a reading's light and dark side."""
    position = position_of_counts(counts, own, home)
    weights = []
    for number, side in enumerate((position.own, position.other)):
        if off is not None:
            weights.append(np.eye(_SUMS)[CHECKERS - off[number]])
        else:
            # A side with all checkers at home may have borne off any number; for others it is rare.
            weights.append(np.full(_SUMS, UNLIKELY_SHARE if furthest_point(side) > HOME else 1.0))
            weights[-1][CHECKERS], weights[-1][0] = 1.0, 0.0
    return (weights[0], weights[1]) if own == "light" else (weights[1], weights[0])


def _counts(classes: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the signed counts of the slices' classes."""
    return tuple(int(c) if c <= CHECKERS else CHECKERS - int(c) for c in classes)


def _shifted_ranges(kind: int) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Return the ranges of the sums of checkers before and after a slice of a class is added."""
    light, dark = (kind, 0) if kind <= CHECKERS else (0, kind - CHECKERS)
    before = (slice(0, _SUMS - light), slice(0, _SUMS - dark))
    return before, (slice(light, None), slice(dark, None))


def _most_likely(logs: Grid) -> tuple[Grid, NDArray[np.int64]]:
    """Return for all sums (16, 16) the log probability of the most likely reading, and pointers.

    A pointer is the class of the last slice in the most likely reading of the first 1 to 26 slices
    with these sums, array (26, 16, 16).
    """
    best = np.full((_SUMS, _SUMS), -np.inf)
    best[0, 0] = 0.0
    pointers = np.zeros((len(logs), _SUMS, _SUMS), dtype=np.int64)
    for index, row in enumerate(logs):
        after = np.full_like(best, -np.inf)
        for kind, log in enumerate(row):
            source, target = _shifted_ranges(kind)
            extended = best[source] + log
            better = extended > after[target]
            after[target] = np.where(better, extended, after[target])
            pointers[index][target] = np.where(better, kind, pointers[index][target])
        best = after
    return best, pointers


def _total_probabilities(probabilities: Grid) -> Grid:
    """Return the total probability of the readings for all sums (16, 16)."""
    before = np.zeros((_SUMS, _SUMS))
    before[0, 0] = 1.0
    for row in probabilities:
        after = np.zeros_like(before)
        for kind, probability in enumerate(row):
            source, target = _shifted_ranges(kind)
            after[target] += before[source] * probability
        before = after
    return before


def _trace_back(pointers: NDArray[np.int64], light: int, dark: int) -> NDArray[np.int64]:
    """Return the classes of the most likely reading with these sums."""
    classes = np.zeros(len(pointers), dtype=np.int64)
    for index in reversed(range(len(pointers))):
        kind = int(pointers[index, light, dark])
        classes[index] = kind
        if kind <= CHECKERS:
            light -= kind
        else:
            dark -= kind - CHECKERS
    return classes
