"""Decoding: from the probabilities of each slice's checkers to the most likely possible position.

The network predicts the checkers of each slice independently. But a side has fifteen checkers, so
the sum over the slices decides between equally likely readings of a board. Viterbi's algorithm
finds the most likely reading for each pair of sums (of the light and of the dark checkers). The
forward algorithm computes the total probability of all readings with each pair of sums.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from casewright_backgammon.board_check import Off, reading_flaw
from casewright_backgammon.board_layout import position_of_counts
from casewright_backgammon.position import CHECKERS, HOME, furthest_point

Grid = NDArray[np.float64]
#: A possible reading is returned if the most likely reading, possible or not, is at most this many
#: times as likely: if the numbers of borne-off checkers are known, and if they are unknown.
MAX_ODDS_KNOWN, MAX_ODDS_UNKNOWN = 1000.0, 20.0
#: Share of unlikely sides (``board_check.is_unlikely``): 0.019 of the 4,000 sides in the shipped
#: case base.
UNLIKELY_SHARE = 0.02
#: Number of possible sums of a side's checkers on the board: 0 to 15.
_SUM_COUNT = CHECKERS + 1
#: Lower probabilities of the network are raised to this.
_MIN_PROBABILITY = 1e-6


def decode(
    predicted: NDArray[np.float32], own: str, home: str, off: Off | None = None
) -> tuple[tuple[int, ...], float]:
    """Return the most likely counts of checkers in the slices, and their probability.

    The result is the most likely possible reading, or an impossible reading if the latter is much
    more likely. For each unlikely side, a reading's probability is multiplied by
    ``UNLIKELY_SHARE``. For ``own``, ``home`` and ``off`` see ``BoardReader.read``.

    Args:
        predicted: Each slice's probabilities of no checker, 1 to 15 light and 1 to 15 dark
            checkers, array (26, 31).

    Returns:
        Signed counts (see ``board_layout.signed_counts``), and the probability of this reading
        among all readings with possible sums; 0 for an impossible reading.
    """
    probabilities = np.maximum(predicted.astype(np.float64), _MIN_PROBABILITY)
    log_by_sums, pointers = _most_likely(np.log(probabilities))
    max_log = float(np.log(probabilities.max(axis=1)).sum())
    max_odds = MAX_ODDS_UNKNOWN if off is None else MAX_ODDS_KNOWN
    best_counts: tuple[int, ...] | None = None
    best_log = -np.inf
    for flat_index in np.argsort(-log_by_sums, axis=None).tolist():
        light_sum, dark_sum = divmod(flat_index, _SUM_COUNT)
        log = float(log_by_sums[light_sum, dark_sum])
        # Weights are at most 1, so a less likely reading cannot overtake the best reading so far.
        if log < max(best_log, max_log - np.log(max_odds)):
            break
        counts = _counts(_trace_back(pointers, light_sum, dark_sum))
        if not reading_flaw(counts, own, home, off):
            weights = _weights(counts, own, home, off)
            log += float(np.log(weights[0][light_sum]) + np.log(weights[1][dark_sum]))
            if log > best_log:
                best_counts, best_log = counts, log
    if best_counts is None:
        return _counts(probabilities.argmax(axis=1)), 0.0
    light_weights, dark_weights = _weights(best_counts, own, home, off)
    total = (_total_probabilities(probabilities) * np.outer(light_weights, dark_weights)).sum()
    return best_counts, float(min(1.0, np.exp(best_log) / max(total, 1e-300)))


def _weights(counts: tuple[int, ...], own: str, home: str, off: Off | None) -> tuple[Grid, Grid]:
    """Return the weights of the sums 0 to 15 for a reading's light side and for its dark side."""
    position = position_of_counts(counts, own, home)
    weights = []
    for player, side in enumerate((position.own, position.other)):
        if off is not None:
            weights.append(np.eye(_SUM_COUNT)[CHECKERS - off[player]])
        else:
            # A side with checkers outside its home board has rarely borne off checkers: the sum is
            # mostly 15. The sum 0 is impossible.
            weight = UNLIKELY_SHARE if furthest_point(side) > HOME else 1.0
            weights.append(np.full(_SUM_COUNT, weight))
            weights[-1][CHECKERS], weights[-1][0] = 1.0, 0.0
    return (weights[0], weights[1]) if own == "light" else (weights[1], weights[0])


def _counts(classes: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the slices' classes as signed counts."""
    return tuple(int(c) if c <= CHECKERS else CHECKERS - int(c) for c in classes)


def _shifted_ranges(class_index: int) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Return the ranges of both sums before a slice with this class is added, and after that."""
    light, dark = (class_index, 0) if class_index <= CHECKERS else (0, class_index - CHECKERS)
    before = (slice(0, _SUM_COUNT - light), slice(0, _SUM_COUNT - dark))
    return before, (slice(light, None), slice(dark, None))


def _most_likely(logs: Grid) -> tuple[Grid, NDArray[np.int64]]:
    """Return each pair of sums' log probability of the most likely reading (16, 16), and pointers.

    The pointers are an array (26, 16, 16). Its item [i, light, dark] is the class of slice i in the
    most likely reading of the slices up to i with the sums ``light`` and ``dark``.
    """
    best = np.full((_SUM_COUNT, _SUM_COUNT), -np.inf)
    best[0, 0] = 0.0
    pointers = np.zeros((len(logs), _SUM_COUNT, _SUM_COUNT), dtype=np.int64)
    for index, row in enumerate(logs):
        after = np.full_like(best, -np.inf)
        for class_index, log in enumerate(row):
            source, target = _shifted_ranges(class_index)
            extended = best[source] + log
            better = extended > after[target]
            after[target] = np.where(better, extended, after[target])
            pointers[index][target] = np.where(better, class_index, pointers[index][target])
        best = after
    return best, pointers


def _total_probabilities(probabilities: Grid) -> Grid:
    """Return the total probability of all readings with each pair of sums (16, 16)."""
    before = np.zeros((_SUM_COUNT, _SUM_COUNT))
    before[0, 0] = 1.0
    for row in probabilities:
        after = np.zeros_like(before)
        for class_index, probability in enumerate(row):
            source, target = _shifted_ranges(class_index)
            after[target] += before[source] * probability
        before = after
    return before


def _trace_back(pointers: NDArray[np.int64], light: int, dark: int) -> NDArray[np.int64]:
    """Return the classes of the most likely reading with these sums."""
    classes = np.zeros(len(pointers), dtype=np.int64)
    for index in reversed(range(len(pointers))):
        class_index = int(pointers[index, light, dark])
        classes[index] = class_index
        if class_index <= CHECKERS:
            light -= class_index
        else:
            dark -= class_index - CHECKERS
    return classes
