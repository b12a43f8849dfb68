"""Whether what was read off a picture of a board can be a position: the check of MCBR-RAG."""

from __future__ import annotations

from collections.abc import Sequence

from casewright.domains.backgammon.board_layout import position_of_counts
from casewright.domains.backgammon.position import CHECKERS, HOME, Position, Side, flaw, last
from casewright.errors import InputError

#: Checkers that the player on roll and the other have borne off.
Off = tuple[int, int]


def reading_flaw(counts: Sequence[int], own: str, home: str, off: Off | None = None) -> str:
    """Return what speaks against a reading, as a sentence; empty where nothing does.

    A side that lacks checkers may have borne them off, but hardly while one stands outside its
    home board. Such a position does arise, when a checker is hit during the bear-off; it is let
    through only when it is told how many have been borne off.

    Args:
        counts: Checkers of 26 slices, light ones above 0; see ``board_layout.signed_counts``.
        own: The colour of the player on roll.
        home: Where he bears off.
        off: How many the player on roll and the other have borne off, where that is known.
    """
    other = "dark" if own == "light" else "light"
    position = position_of_counts(counts, own, home)
    sides = ((own, position.own), (other, position.other))
    for colour, side in sides:
        if sum(side) > CHECKERS:
            return f"the {colour} side has {sum(side)} checkers, and may have {CHECKERS} at most."
        if not any(side):
            return f"the {colour} side has no checkers."
    if why := flaw(position):
        return why[0].lower() + why[1:]
    for number, (colour, side) in enumerate(sides):
        if why := _missing(colour, side, None if off is None else off[number]):
            return why
    return ""


def _missing(colour: str, side: Side, off: int | None) -> str:
    count = sum(side)
    if off is not None:
        if count + off == CHECKERS:
            return ""
        return (
            f"the {colour} side has {count} checkers, and {CHECKERS - off} are left "
            f"when {off} have been borne off."
        )
    back = last(side)
    if count == CHECKERS or back <= HOME:
        return ""
    where = "on the bar" if back == len(side) else f"on its {back} point"
    return (
        f"the {colour} side has {count} of {CHECKERS} checkers, "
        f"but has hardly borne any off while one stands {where}."
    )


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


def refused_by_check(position: Position) -> bool:
    """Tell whether a position is refused, even rightly read, where nobody says what is off."""
    sides = (("own", position.own), ("other", position.other))
    return any(bool(_missing(colour, side, None)) for colour, side in sides)
