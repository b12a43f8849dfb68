"""Which position slices show, when all that is known about positions is taken into account.

Slices are counted one by one, but a side has fifteen checkers: a stack of which 5 and 6 are as
likely is the one or the other as the rest adds up. The sums over all readings with given numbers
of checkers are those of the forward algorithm, the most likely one is Viterbi's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from casewright_backgammon.board_check import Off, reading_flaw
from casewright_backgammon.board_layout import position_of_counts
from casewright_backgammon.position import CHECKERS, HOME, last

Grid = NDArray[np.float64]
#: A legal reading is taken only where it is at most so many times less likely than the most
#: likely one of all: where it is told what is borne off, and where that is but presumed.
ODDS_TOLD, ODDS_PRESUMED = 1000.0, 20.0
#: How often a side lacks checkers while one stands outside its home board: of the 4,000 sides of
#: the case base that ships, 0.019.
LACKING = 0.02
#: Checkers of a side on the board: 0 to 15.
_SUMS = CHECKERS + 1
#: No probability is taken for less, however sure the network is.
_LEAST = 1e-6


def decoded(
    likely: NDArray[np.float32], own: str, home: str, off: Off | None = None
) -> tuple[tuple[int, ...], float]:
    """Return the counts that slices most likely show, and how probable they are.

    Of the readings that nothing forbids the most likely one, where it is not much less likely than
    the most likely one of all; else that one. A side that lacks checkers while one is not yet home
    is seldom seen, and weighed so.

    Args:
        likely: Probabilities of none, 1 to 15 light, 1 to 15 dark checkers, array (26, 31).
        own: The colour of the player on roll.
        home: Where he bears off.
        off: Checkers that he and the other have borne off, where that is known.

    Returns:
        Signed counts, see ``board_layout.signed_counts``, and the probability of all of them
        together among the readings with numbers of checkers that are possible.
    """
    sure = np.maximum(likely.astype(np.float64), _LEAST)
    best, ways = _most_likely(np.log(sure))
    top = float(np.log(sure.max(axis=1)).sum())
    odds = ODDS_PRESUMED if off is None else ODDS_TOLD
    found: tuple[int, ...] | None = None
    weighed = -np.inf
    for state in np.argsort(-best, axis=None).tolist():
        light, dark = divmod(state, _SUMS)
        log = float(best[light, dark])
        # Weights are 1 at most: what is less likely than the best so far cannot overtake it.
        if log < max(weighed, top - np.log(odds)):
            break
        counts = _counts(_traced(ways, light, dark))
        if not reading_flaw(counts, own, home, off):
            seldom = _weights(counts, own, home, off)
            log += float(np.log(seldom[0][light]) + np.log(seldom[1][dark]))
            if log > weighed:
                found, weighed = counts, log
    if found is None:
        return _counts(sure.argmax(axis=1)), 0.0
    light_weights, dark_weights = _weights(found, own, home, off)
    possible = (_summed(sure) * np.outer(light_weights, dark_weights)).sum()
    return found, float(min(1.0, np.exp(weighed) / max(possible, 1e-300)))


def _weights(counts: tuple[int, ...], own: str, home: str, off: Off | None) -> tuple[Grid, Grid]:
    """Return how often the light and the dark side have 0 to 15 checkers, if they stand so."""
    position = position_of_counts(counts, own, home)
    made = []
    for number, side in enumerate((position.own, position.other)):
        if off is not None:
            weights = np.zeros(_SUMS)
            weights[CHECKERS - off[number]] = 1.0
        else:
            # With all at home, any number may be off; else hardly one.
            weights = np.full(_SUMS, LACKING if last(side) > HOME else 1.0)
            weights[CHECKERS], weights[0] = 1.0, 0.0
        made.append(weights)
    return (made[0], made[1]) if own == "light" else (made[1], made[0])


def _counts(classes: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(int(c) if c <= CHECKERS else CHECKERS - int(c) for c in classes)


def _moved(kind: int) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Return where sums are before and after a slice of a class is added."""
    light, dark = (kind, 0) if kind <= CHECKERS else (0, kind - CHECKERS)
    before = (slice(0, _SUMS - light), slice(0, _SUMS - dark))
    return before, (slice(light, None), slice(dark, None))


def _most_likely(logs: Grid) -> tuple[Grid, NDArray[np.int64]]:
    """Return the logarithm of the most likely reading by sums (16, 16), and its classes' ways."""
    best = np.full((_SUMS, _SUMS), -np.inf)
    best[0, 0] = 0.0
    ways = np.zeros((len(logs), _SUMS, _SUMS), dtype=np.int64)
    for place, row in enumerate(logs):
        after = np.full_like(best, -np.inf)
        for kind, log in enumerate(row):
            source, target = _moved(kind)
            tried = best[source] + log
            better = tried > after[target]
            after[target] = np.where(better, tried, after[target])
            ways[place][target] = np.where(better, kind, ways[place][target])
        best = after
    return best, ways


def _summed(sure: Grid) -> Grid:
    """Return the probability of all readings with given sums (16, 16) together."""
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
    for place in reversed(range(len(ways))):
        kind = int(ways[place, light, dark])
        classes[place] = kind
        if kind <= CHECKERS:
            light -= kind
        else:
            dark -= kind - CHECKERS
    return classes
