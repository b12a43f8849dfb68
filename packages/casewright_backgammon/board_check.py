"""Checks whether the position that was read from a board is possible, and whether it is likely."""

from __future__ import annotations

from collections.abc import Sequence

from casewright.errors import InputError
from casewright_backgammon.board_layout import position_of_counts
from casewright_backgammon.position import CHECKERS, HOME, Position, Side, flaw, furthest_point

#: Numbers of checkers that the player on roll and the other player have borne off.
Off = tuple[int, int]


def reading_flaw(counts: Sequence[int], own: str, home: str, off: Off | None = None) -> str:
    """Return why a reading is impossible, as the end of a sentence; empty if it is possible.

    For ``counts`` see ``signed_counts``; for the other arguments see ``BoardReader.read``.
    """
    position = position_of_counts(counts, own, home)
    sides = _colours_and_sides(position, own)
    for colour, side in sides:
        if sum(side) > CHECKERS:
            return f"the {colour} side has {sum(side)} checkers, and may have {CHECKERS} at most."
        if not any(side):
            return f"the {colour} side has no checkers."
    if reason := flaw(position):
        return reason[0].lower() + reason[1:]
    for player, (colour, side) in enumerate(sides):
        if off is not None and sum(side) + off[player] != CHECKERS:
            return (
                f"the {colour} side has {sum(side)} checkers, and {CHECKERS - off[player]} are "
                f"left when {off[player]} have been borne off."
            )
    return ""


def reading_doubt(counts: Sequence[int], own: str, home: str) -> str:
    """Return why a possible reading is unlikely; empty if it is likely.

    A side with fewer than fifteen checkers has begun to bear off. Such a side has a checker outside
    its home board only after a hit, which is rare.
    """
    for colour, side in _colours_and_sides(position_of_counts(counts, own, home), own):
        if is_unlikely(side):
            furthest = furthest_point(side)
            # The last place of a side is the bar.
            place = "on the bar" if furthest == len(side) else f"on its {furthest} point"
            return (
                f"the {colour} side has {sum(side)} of {CHECKERS} checkers, but checkers are "
                f"seldom borne off while one stands {place}."
            )
    return ""


def is_unlikely(side: Side) -> bool:
    """Return True if a side has borne off checkers, and has a checker outside its home board."""
    return sum(side) < CHECKERS and furthest_point(side) > HOME


def _colours_and_sides(position: Position, own: str) -> tuple[tuple[str, Side], tuple[str, Side]]:
    """Return each player's colour and checkers; the player on roll is first."""
    other = "dark" if own == "light" else "light"
    return (own, position.own), (other, position.other)


def check_off(off: Off | None) -> None:
    """Raise ``InputError`` if ``off`` is neither ``None`` nor two whole numbers from 0 to 15."""
    if off is not None and (
        len(off) != 2 or not all(type(count) is int and 0 <= count <= CHECKERS for count in off)
    ):
        raise InputError(
            f"Borne-off checkers are two numbers from 0 to {CHECKERS}, of the player on roll and "
            f"of the other, not {off!r:.60}."
        )
