"""The layout of a board's points in a picture.

The player on roll sits below. On the usual board (``home="right"``) this player bears off at the
lower right: the player's points 1 to 12 are in the lower row from right to left, 13 to 24 in the
upper row from left to right. On a mirrored board (``home="left"``) left and right are exchanged.
Point p of a player is point 25 - p of the other player.

A picture is divided into 26 slices: the lower row of points from left to right (0 to 11), the upper
row from left to right (12 to 23), the lower half of the bar (24), and its upper half (25).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from casewright.errors import InputError
from casewright_backgammon.position import BAR, PLACES, POINTS, Position

#: The colour of a player's checkers, and the side where the player on roll bears off.
Colour = Literal["light", "dark"]
Home = Literal["right", "left"]

#: Number of slices in a row, and on a board.
ROW_SLICES, SLICE_COUNT = POINTS // 2, POINTS + 2
#: Indices of the slices of the bar.
LOWER_BAR, UPPER_BAR = POINTS, POINTS + 1


def check_view(own: str, home: str) -> None:
    """Raise ``InputError`` if ``own`` is not a ``Colour``, or ``home`` is not a ``Home``."""
    if own not in ("light", "dark"):
        raise InputError(
            f'own is the colour of the player on roll: "light" or "dark", not {own!r:.40}.'
        )
    if home not in ("right", "left"):
        raise InputError(
            f'home is the side where this player bears off: "right" or "left", not {home!r:.40}.'
        )


def point_of_slice(index: int, home: str) -> int:
    """Return the number of the point (1 to 24) that a slice (0 to 23) shows."""
    column = index % ROW_SLICES if home == "right" else ROW_SLICES - 1 - index % ROW_SLICES
    return ROW_SLICES - column if index < ROW_SLICES else ROW_SLICES + 1 + column


def signed_counts(
    position: Position, own: str, home: str, *, own_bar_below: bool = True
) -> list[int]:
    """Return the counts of 26 slices: positive for light checkers, negative for dark checkers.

    ``own`` is the colour of the player on roll, who bears off on the side ``home``. This player has
    the lower half of the bar if ``own_bar_below``, else the upper half.
    """
    sign = 1 if own == "light" else -1
    points = [point_of_slice(index, home) for index in range(POINTS)]
    counts = [sign * (position.own[p - 1] - position.other[POINTS - p]) for p in points]
    bar = [sign * position.own[BAR], -sign * position.other[BAR]]
    return counts + (bar if own_bar_below else bar[::-1])


def position_of_counts(counts: Sequence[int], own: str, home: str) -> Position:
    """Return the position, possible or not, with these counts of 26 slices; see ``signed_counts``.

    Either player may have either half of the bar: the colour shows whose checkers are there.
    """
    sign = 1 if own == "light" else -1
    own_side, other_side = [0] * PLACES, [0] * PLACES
    for index, signed_count in enumerate(counts):
        point = point_of_slice(index, home) if index < POINTS else 0
        count = sign * signed_count
        # Point 0 stands for the bar, the last index of a side: -1 or ``POINTS``.
        own_side[point - 1] += max(count, 0)
        other_side[POINTS - point] += max(-count, 0)
    return Position(tuple(own_side), tuple(other_side))
