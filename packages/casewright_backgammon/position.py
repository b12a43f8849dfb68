"""Backgammon positions, from the side of the player on roll, and GNU Backgammon's position ids."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

from casewright.errors import InputError

#: Number of points on the board; index of the bar in a side; length of a side.
POINTS = 24
BAR = POINTS
PLACES = POINTS + 1
#: Number of checkers of a player.
CHECKERS = 15
#: Number of points in a home board.
HOME = 6
#: Number of characters in a position id.
_ID = 14

Side = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """A position."""

    #: Checkers of the player on roll: 24 points, this player's 1 point first, then the bar.
    own: Side
    other: Side  # checkers of the other player, on that player's points, then the bar

    @property
    def flipped(self) -> Position:
        """The position from the other player's side."""
        return Position(self.other, self.own)

    @property
    def pips(self) -> tuple[int, int]:
        """The pip counts of the player on roll and the other player; 25 from the bar."""
        return pips(self.own), pips(self.other)

    @property
    def off(self) -> tuple[int, int]:
        """The numbers of checkers that both players have borne off."""
        return CHECKERS - sum(self.own), CHECKERS - sum(self.other)

    @property
    def in_contact(self) -> bool:
        """True if checkers of both players can still meet."""
        return furthest_point(self.own) + furthest_point(self.other) > POINTS

    @property
    def id(self) -> str:
        """GNU Backgammon's position id: 14 characters."""
        bits = "".join(f"{'1' * count}0" for count in (*self.other, *self.own))
        # The first bit is the lowest bit of the first byte.
        number = int(bits[::-1], 2)
        return base64.b64encode(number.to_bytes(10, "little")).decode("ascii")[:_ID]


def pips(side: Side) -> int:
    """Return the pip count of a side."""
    return sum(point * count for point, count in enumerate(side, 1))


def furthest_point(side: Side) -> int:
    """Return a side's point furthest from home with a checker: 25 for the bar, 0 if none."""
    return max((point for point, count in enumerate(side, 1) if count), default=0)


def position_of_id(text: str) -> Position:
    """Return an id's position; ``InputError`` if it is no id, or the position is impossible."""
    try:
        raw = base64.b64decode(f"{text}==", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(text) != _ID or len(raw) != 10:
        raise InputError(
            f"{text!r:.40} is not a position id. It has {_ID} characters, such as 4HPwATDgc/ABMA."
        )
    number = int.from_bytes(raw, "little")
    # Each count is a run of ones, and a zero ends it.
    *runs, _ = f"{number:080b}"[::-1].split("0")
    counts = tuple(map(len, runs[: 2 * PLACES]))
    if len(counts) < 2 * PLACES:
        raise InputError(f"{text!r} is not a position: it has too few points.")
    return checked(Position(counts[PLACES:], counts[:PLACES]))


def checked(position: Position) -> Position:
    """Return a position unchanged; ``InputError`` says why it is impossible, if it is."""
    if why := flaw(position):
        raise InputError(f"This is not a backgammon position: {why}")
    return position


def flaw(position: Position) -> str:
    """Return why a position is impossible, as a sentence; empty if it is possible."""
    for side, whose in ((position.own, "The player on roll"), (position.other, "The other player")):
        if len(side) != PLACES or any(count < 0 for count in side):
            return f"{whose} needs {POINTS} points and the bar, with no count below 0."
        if sum(side) > CHECKERS:
            return f"{whose} has {sum(side)} checkers, and may have {CHECKERS} at most."
        if not any(side):
            return f"{whose} has no checker left: the game is over."
    for point in range(POINTS):
        if position.own[point] and position.other[POINTS - 1 - point]:
            return f"Both players have checkers on point {point + 1}."
    if all(side[BAR] and min(side[:HOME]) >= 2 for side in (position.own, position.other)):
        return "Both players are on the bar against a closed board."
    return ""


def side_of(counts: Sequence[tuple[int, int]]) -> Side:
    """Return a side from pairs of a point (1 to 24, 25 for the bar) and a count."""
    by_point = dict(counts)
    return tuple(by_point.get(point, 0) for point in range(1, PLACES + 1))


#: The position at the start of a game.
START = Position(*repeat(side_of([(6, 5), (8, 3), (13, 5), (24, 2)]), 2))


def in_words(position: Position) -> str:
    """Return a position as text: checkers by points, pips, borne-off checkers."""
    lines = []
    for name, side, off, pip_count in zip(
        ("Player on roll", "Opponent"),
        (position.own, position.other),
        position.off,
        position.pips,
        strict=True,
    ):
        texts = [f"{side[BAR]} on the bar"] if side[BAR] else []
        texts += [f"{side[p - 1]} on {p}" for p in range(POINTS, 0, -1) if side[p - 1]]
        texts += [f"{off} borne off"] if off else []
        lines.append(f"{name} ({pip_count} pips): {', '.join(texts)}.")
    return "\n".join(lines)
