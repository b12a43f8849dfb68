"""The input encoding of the networks: the 198 numbers of TD-Gammon (Tesauro 1995)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from casewright_backgammon.position import BAR, CHECKERS, POINTS, Position
from casewright_mcbr.layers import Floats

#: Length of a position's encoding, and of the part for one side: four numbers for each point, one
#: for the bar and one for the borne-off checkers. The last two numbers of an encoding are the turn.
INPUT_COUNT, SIDE_INPUTS = 198, 98


def encode(positions: Sequence[Position]) -> Floats:
    """Return the encodings of n positions, array (n, 198); the player on roll is first.

    A point has four numbers: flags for at least one, two and three checkers, and half of the number
    beyond three. The number on the bar is halved, and the number of borne-off checkers is divided
    by 15. The last two numbers are 1 and 0: the turn of the first side.
    """
    if not positions:
        return np.zeros((0, INPUT_COUNT), dtype=np.float32)
    counts = np.array([(position.own, position.other) for position in positions], dtype=np.float32)
    points = counts[:, :, :POINTS]
    point_inputs = np.stack(
        [points >= 1, points >= 2, points >= 3, np.maximum(points - 3, 0) / 2], axis=-1
    )
    encoded = np.zeros((len(counts), INPUT_COUNT), dtype=np.float32)
    for side in (0, 1):
        start = side * SIDE_INPUTS
        encoded[:, start : start + 4 * POINTS] = point_inputs[:, side].reshape(len(counts), -1)
        encoded[:, start + 4 * POINTS] = counts[:, side, BAR] / 2
        encoded[:, start + 4 * POINTS + 1] = (CHECKERS - counts[:, side].sum(axis=1)) / CHECKERS
    encoded[:, -2] = 1
    return encoded
