"""The layout of a board's points in a picture.

The player on roll sits below. On the usual board (``home="right"``) that player bears off at the
lower right. The points 1 to 12 are in the lower row from right to left, 13 to 24 in the upper row
from left to right. A mirrored board (``home="left"``) has left and right exchanged. The other
player's name for point p is 25 - p.

A picture has 26 slices: the lower row from left to right (0 to 11), the upper row from left to
right (12 to 23), the lower half of the bar (24), and the upper half of the bar (25).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from casewright.errors import InputError
from casewright_backgammon.position import BAR, POINTS, Position

#: The colour of a player's checkers, and the side where the player on roll bears off.
Colour = Literal["light", "dark"]
Home = Literal["right", "left"]

#: Number of slices in a row and on a board; indices of the halves of the bar.
ROW = POINTS // 2
SLICES = POINTS + 2
LOWER_BAR, UPPER_BAR = POINTS, POINTS + 1


def checked_view(own: str, home: str) -> None:
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
    column = index % ROW
    if home == "left":
        column = ROW - 1 - column
    return ROW - column if index < ROW else ROW + 1 + column


def signed_counts(
    position: Position, own: str, home: str, *, own_bar_below: bool = True
) -> list[int]:
    """Return the counts of 26 slices: positive for light checkers, negative for dark checkers.

    ``own`` is the colour of the player on roll, who bears off on the side ``home``. This player's
    checkers on the bar are in its lower half if ``own_bar_below``, else in its upper half.
    """
    sign = 1 if own == "light" else -1
    counts = []
    for index in range(POINTS):
        point = point_of_slice(index, home)
        counts.append(sign * (position.own[point - 1] - position.other[POINTS - point]))
    bar = [sign * position.own[BAR], -sign * position.other[BAR]]
    return counts + (bar if own_bar_below else bar[::-1])


def position_of_counts(counts: Sequence[int], own: str, home: str) -> Position:
    """Return the position of 26 slices, possible or not; the inverse of ``signed_counts``.

    The colour of a checker shows its player, on both halves of the bar.
    """
    sign = 1 if own == "light" else -1
    mine, others = [0] * (BAR + 1), [0] * (BAR + 1)
    for index in range(POINTS):
        point = point_of_slice(index, home)
        count = sign * counts[index]
        mine[point - 1] = max(count, 0)
        others[POINTS - point] = max(-count, 0)
    for index in (LOWER_BAR, UPPER_BAR):
        mine[BAR] += max(sign * counts[index], 0)
        others[BAR] += max(-sign * counts[index], 0)
    return Position(tuple(mine), tuple(others))
