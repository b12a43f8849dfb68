"""Whether what was read off a picture of a board can be a position: the check of MCBR-RAG."""

from __future__ import annotations

from collections.abc import Sequence

from casewright_backgammon.board_layout import position_of_counts
from casewright_backgammon.position import CHECKERS, HOME, Position, Side, flaw, last
from casewright.errors import InputError

#: Checkers that the player on roll and the other have borne off.
Off = tuple[int, int]


def reading_flaw(counts: Sequence[int], own: str, home: str, off: Off | None = None) -> str:
    """Return what forbids a reading, as a sentence; empty where nothing does.

    Args:
        counts: Checkers of 26 slices, light ones above 0; see ``board_layout.signed_counts``.
        own: The colour of the player on roll.
        home: Where he bears off.
        off: How many the player on roll and the other have borne off, where that is known.
    """
    position = position_of_counts(counts, own, home)
    sides = _coloured(position, own)
    for colour, side in sides:
        if sum(side) > CHECKERS:
            return f"the {colour} side has {sum(side)} checkers, and may have {CHECKERS} at most."
        if not any(side):
            return f"the {colour} side has no checkers."
    if why := flaw(position):
        return why[0].lower() + why[1:]
    for number, (colour, side) in enumerate(sides):
        if off is not None and sum(side) + off[number] != CHECKERS:
            return (
                f"the {colour} side has {sum(side)} checkers, and {CHECKERS - off[number]} are "
                f"left when {off[number]} have been borne off."
            )
    return ""


def reading_doubt(counts: Sequence[int], own: str, home: str) -> str:
    """Return what speaks against a reading though it is possible; empty where nothing does.

    A side that lacks checkers has borne them off, but one of it seldom stands outside its home
    board then: it was hit during the bear-off.

    Args:
        counts: Checkers of 26 slices, light ones above 0; see ``board_layout.signed_counts``.
        own: The colour of the player on roll.
        home: Where he bears off.
    """
    for colour, side in _coloured(position_of_counts(counts, own, home), own):
        if lacks(side):
            back = last(side)
            where = "on the bar" if back == len(side) else f"on its {back} point"
            return (
                f"the {colour} side has {sum(side)} of {CHECKERS} checkers, "
                f"but seldom has any been borne off while one stands {where}."
            )
    return ""


def lacks(side: Side) -> bool:
    """Tell whether a side lacks checkers while one stands outside its home board."""
    return sum(side) < CHECKERS and last(side) > HOME


def _coloured(position: Position, own: str) -> tuple[tuple[str, Side], tuple[str, Side]]:
    other = "dark" if own == "light" else "light"
    return (own, position.own), (other, position.other)


def checked_off(off: Off | None) -> None:
    """Check numbers of checkers that have been borne off.

    Raises:
        InputError: They are not two whole numbers from 0 to 15.
    """
    if off is None:
        return
    if len(off) != 2 or not all(type(one) is int and 0 <= one <= CHECKERS for one in off):
        raise InputError(
            f"Borne-off checkers are two numbers from 0 to {CHECKERS}, of the player on roll and "
            f"of the other, not {off!r:.60}."
        )
