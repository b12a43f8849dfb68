"""What networks take of a position: the 198 numbers of TD-Gammon (Tesauro 1995)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from casewright_backgammon.position import BAR, CHECKERS, Position

#: Numbers of an encoded position: two sides of 24 points by 4, bar and off; whose turn, twice.
INPUTS = 198
#: Numbers of one side.
SIDE = 98

Floats = NDArray[np.float32]


def encode(positions: Sequence[Position]) -> Floats:
    """Return n positions encoded, array (n, 198), the player on roll first.

    A point has four numbers: 1 for one checker, for two, for three or more, and half of those
    beyond three. The bar is halved, what is borne off is a share of 15. The last two say whose
    turn it is: always the first side's, since a position is seen from the player on roll.
    """
    if not positions:
        return np.zeros((0, INPUTS), dtype=np.float32)
    counts = np.array([(one.own, one.other) for one in positions], dtype=np.float32)
    return encode_counts(counts)


def encode_counts(counts: Floats) -> Floats:
    """Return counts of checkers, array (n, 2, 25), encoded."""
    points = counts[:, :, :BAR]
    units = np.stack(
        [points >= 1, points >= 2, points >= 3, np.maximum(points - 3, 0) / 2], axis=-1
    )
    made = np.zeros((len(counts), INPUTS), dtype=np.float32)
    for side in (0, 1):
        start = side * SIDE
        made[:, start : start + 4 * BAR] = units[:, side].reshape(len(counts), -1)
        made[:, start + 4 * BAR] = counts[:, side, BAR] / 2
        made[:, start + 4 * BAR + 1] = (CHECKERS - counts[:, side].sum(axis=1)) / CHECKERS
    made[:, -2] = 1
    return made
