"""Which point of a board stands where in a picture of it.

The player on roll sits below. On a board of the usual kind (``home="right"``) he bears off at the
lower right: his points 1 to 6 are below on the right, counted from right to left, 7 to 12 below on
the left, 13 to 18 above on the left, from left to right, 19 to 24 above on the right. A mirrored
board (``home="left"``) is the same with left and right exchanged. The other player's checkers
stand on the same points, which he counts from his side: his point p is the first one's 25 - p.

A picture is read as 26 slices: the lower row from left to right (0 to 11), the upper row from left
to right (12 to 23), the lower half of the bar (24), the upper half (25).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from casewright_backgammon.position import BAR, POINTS, Position
from casewright.errors import InputError

Colour = Literal["light", "dark"]
Home = Literal["right", "left"]

#: Slices of a board: two rows of twelve points, two halves of the bar.
ROW = POINTS // 2
SLICES = POINTS + 2
LOWER_BAR, UPPER_BAR = POINTS, POINTS + 1


def checked_view(own: str, home: str) -> None:
    """Check how a board is looked at.

    Raises:
        InputError: ``own`` is not "light" or "dark", or ``home`` not "right" or "left".
    """
    if own not in ("light", "dark"):
        raise InputError(f'own says whose checkers are whose: "light" or "dark", not {own!r:.40}.')
    if home not in ("right", "left"):
        raise InputError(
            f'home says where the player bears off: "right" or "left", not {home!r:.40}.'
        )


def point_of_slice(place: int, home: str) -> int:
    """Return the player's point (1 to 24) that a slice (0 to 23) shows."""
    column = place % ROW
    if home == "left":
        column = ROW - 1 - column
    return ROW - column if place < ROW else ROW + 1 + column


def signed_counts(
    position: Position, own: str, home: str, *, own_bar_below: bool = True
) -> list[int]:
    """Return the checkers of 26 slices: light ones as numbers above 0, dark ones below.

    Args:
        position: What stands on the board.
        own: The colour of the player on roll.
        home: Where he bears off.
        own_bar_below: Whether his checkers on the bar stand in its lower half, the other's above.
    """
    sign = 1 if own == "light" else -1
    counts = []
    for place in range(POINTS):
        point = point_of_slice(place, home)
        counts.append(sign * (position.own[point - 1] - position.other[POINTS - point]))
    bar = [sign * position.own[BAR], -sign * position.other[BAR]]
    return counts + (bar if own_bar_below else bar[::-1])


def position_of_counts(counts: Sequence[int], own: str, home: str) -> Position:
    """Return the position of 26 slices, legal or not; the opposite of ``signed_counts``.

    Checkers on the bar are told by their colour, in whichever half they stand.
    """
    sign = 1 if own == "light" else -1
    mine, others = [0] * (BAR + 1), [0] * (BAR + 1)
    for place in range(POINTS):
        point = point_of_slice(place, home)
        count = sign * counts[place]
        mine[point - 1] = max(count, 0)
        others[POINTS - point] = max(-count, 0)
    for place in (LOWER_BAR, UPPER_BAR):
        mine[BAR] += max(sign * counts[place], 0)
        others[BAR] += max(-sign * counts[place], 0)
    return Position(tuple(mine), tuple(others))
