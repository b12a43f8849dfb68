"""Backgammon positions, from the side of the player on roll, and GNU Backgammon's position ids."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

from casewright.errors import InputError

#: Number of points on the board.
POINTS = 24
#: Index of the bar in a ``Side``, and length of a ``Side``.
BAR, PLACES = POINTS, POINTS + 1
#: Number of checkers of a player.
CHECKERS = 15
#: Number of points in a home board.
HOME = 6
#: Number of characters in a position id.
_ID_LENGTH = 14

#: Numbers of a player's checkers: on this player's points 1 to 24, then on the bar.
Side = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """The checkers of both players; each player's home board has that player's points 1 to 6."""

    own: Side  # checkers of the player on roll
    other: Side  # checkers of the other player

    @property
    def flipped(self) -> Position:
        """The position from the other player's side."""
        return Position(self.other, self.own)

    @property
    def pips(self) -> tuple[int, int]:
        """Pip counts of the player on roll and the other; a checker on the bar counts 25."""
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
        return base64.b64encode(number.to_bytes(10, "little")).decode("ascii")[:_ID_LENGTH]


def pips(side: Side) -> int:
    """Return the pip count of a side."""
    return sum(point * count for point, count in enumerate(side, 1))


def furthest_point(side: Side) -> int:
    """Return a side's highest point that has a checker: 25 for the bar, 0 for no checker."""
    return max((point for point, count in enumerate(side, 1) if count), default=0)


def position_of_id(text: str) -> Position:
    """Return the position of an id; raise ``InputError`` if the id or the position is invalid."""
    try:
        raw = base64.b64decode(f"{text}==", validate=True)
    except ValueError:
        raw = b""
    if len(text) != _ID_LENGTH or len(raw) != 10:
        raise InputError(
            f"{text!r:.40} is not a position id. It has {_ID_LENGTH} characters, such as "
            "4HPwATDgc/ABMA."
        )
    number = int.from_bytes(raw, "little")
    # A run of ones is a count, and a zero ends each run. The other player's counts come first.
    *runs, _ = f"{number:080b}"[::-1].split("0")
    counts = tuple(map(len, runs[: 2 * PLACES]))
    if len(counts) < 2 * PLACES:
        raise InputError(f"{text!r} is not a position: it has too few points.")
    return require_possible(Position(counts[PLACES:], counts[:PLACES]))


def require_possible(position: Position) -> Position:
    """Return the position unchanged; raise ``InputError`` if it is impossible."""
    if reason := flaw(position):
        raise InputError(f"This is not a backgammon position: {reason}")
    return position


def flaw(position: Position) -> str:
    """Return why a position is impossible, as a sentence; empty if it is possible."""
    for side, name in ((position.own, "The player on roll"), (position.other, "The other player")):
        if len(side) != PLACES or any(count < 0 for count in side):
            return f"{name} needs {POINTS} points and the bar, with no count below 0."
        if sum(side) > CHECKERS:
            return f"{name} has {sum(side)} checkers, and may have {CHECKERS} at most."
        if not any(side):
            return f"{name} has no checker left: the game is over."
    for point in range(POINTS):
        if position.own[point] and position.other[POINTS - 1 - point]:
            return f"Both players have checkers on point {point + 1}."
    if all(side[BAR] and min(side[:HOME]) >= 2 for side in (position.own, position.other)):
        return "Both players are on the bar against a closed board."
    return ""


def side_of(counts: Sequence[tuple[int, int]]) -> Side:
    """Return a side from pairs of a point (1 to 24, 25 for the bar) and a count."""
    count_by_point = dict(counts)
    return tuple(count_by_point.get(point, 0) for point in range(1, PLACES + 1))


#: The position at the start of a game.
START = Position(*repeat(side_of([(6, 5), (8, 3), (13, 5), (24, 2)]), 2))


def position_text(position: Position) -> str:
    """Return a position as two lines of text, with the pips and checkers of each player."""
    lines = []
    for name, side in (("Player on roll", position.own), ("Opponent", position.other)):
        texts = [f"{side[BAR]} on the bar"] if side[BAR] else []
        texts += [f"{side[p - 1]} on {p}" for p in range(POINTS, 0, -1) if side[p - 1]]
        texts += [f"{CHECKERS - sum(side)} borne off"] if sum(side) != CHECKERS else []
        lines.append(f"{name} ({pips(side)} pips): {', '.join(texts)}.")
    return "\n".join(lines)
