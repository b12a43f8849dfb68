"""Checks whether the position that was read from a board is possible, and whether it is likely."""

from __future__ import annotations

from collections.abc import Sequence

from casewright.errors import InputError
from casewright_backgammon.board_layout import position_of_counts
from casewright_backgammon.position import CHECKERS, HOME, Position, Side, flaw, furthest_point

#: Numbers of checkers that the player on roll and the other player have borne off.
Off = tuple[int, int]


def reading_flaw(counts: Sequence[int], own: str, home: str, off: Off | None = None) -> str:
    """Return why a reading is impossible, as a sentence; empty if it is possible.

    For the arguments see ``BoardReader.read`` and ``board_layout.signed_counts``.
    """
    position = position_of_counts(counts, own, home)
    sides = _sides_by_colour(position, own)
    for colour, side in sides:
        if sum(side) > CHECKERS:
            return f"the {colour} side has {sum(side)} checkers, and may have {CHECKERS} at most."
        if not any(side):
            return f"the {colour} side has no checkers."
    if reason := flaw(position):
        return reason[0].lower() + reason[1:]
    for number, (colour, side) in enumerate(sides):
        if off is not None and sum(side) + off[number] != CHECKERS:
            return (
                f"the {colour} side has {sum(side)} checkers, and {CHECKERS - off[number]} are "
                f"left when {off[number]} have been borne off."
            )
    return ""


def reading_doubt(counts: Sequence[int], own: str, home: str) -> str:
    """Return why a possible reading is unlikely; empty if it is likely. See ``reading_flaw``.

    A side with fewer than fifteen checkers has begun to bear off. Then it has a checker outside its
    home board only after a hit, which is rare.
    """
    for colour, side in _sides_by_colour(position_of_counts(counts, own, home), own):
        if is_unlikely(side):
            furthest = furthest_point(side)
            place = "on the bar" if furthest == len(side) else f"on its {furthest} point"
            return (
                f"the {colour} side has {sum(side)} of {CHECKERS} checkers, but checkers are "
                f"seldom borne off while one stands {place}."
            )
    return ""


def is_unlikely(side: Side) -> bool:
    """Return True if a side has borne off checkers, and has a checker outside its home board."""
    return sum(side) < CHECKERS and furthest_point(side) > HOME


def _sides_by_colour(position: Position, own: str) -> tuple[tuple[str, Side], tuple[str, Side]]:
    other = "dark" if own == "light" else "light"
    return (own, position.own), (other, position.other)


def check_off(off: Off | None) -> None:
    """Raise ``InputError`` if the borne-off checkers are not two whole numbers from 0 to 15."""
    if off is not None and (
        len(off) != 2 or not all(type(count) is int and 0 <= count <= CHECKERS for count in off)
    ):
        raise InputError(
            f"Borne-off checkers are two numbers from 0 to {CHECKERS}, of the player on roll and "
            f"of the other, not {off!r:.60}."
        )
