"""Effects of a play on the board, in the players' terms, and the phase of a game.

The terms are from Robertie, "501 Essential Backgammon Problems"; the limits are this project's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from casewright_backgammon.position import (
    BAR,
    CHECKERS,
    HOME,
    POINTS,
    START,
    Position,
    Side,
    pips,
)

Phase = Literal["opening", "middle", "holding", "back game", "contact bear-off", "race", "bear-off"]

#: The bar point, and the other player's five point: the golden anchor.
BAR_POINT, GOLDEN_ANCHOR = 7, 20
#: The first point of the other player's home board.
BACK = POINTS - HOME + 1
#: A checker runs from this point or behind it, to ``_RUN_TO`` or further.
EDGE, _RUN_TO = BACK - 1, 15
#: Points whose new blots count as slots.
_SLOTS = range(4, BAR_POINT + 1)
#: Minimum number of checkers on a heavy point.
_HEAVY = 5
#: Maximum number of checkers, of 30, that have left their initial points in an opening.
_OPENING = 8
#: Minimum deficit of a back game, in pips.
_BEHIND = 20


@dataclass(frozen=True, slots=True)
class PlayFeatures:
    """The effects of a play, from the side of the player who makes it.

    Points are this player's, 1 to 24. A made point has two checkers or more; a blot is a single
    checker.
    """

    hits: int  # checkers hit
    hit_points: tuple[int, ...]  # points on which checkers are hit, the highest first
    entered: int  # checkers that enter from the bar
    borne_off: int  # checkers borne off
    pips: int  # pips moved
    points_made: tuple[int, ...]  # points that the play makes
    broken: tuple[int, ...]  # points that the play breaks
    blots: tuple[int, ...]  # blots after the play
    loose: tuple[int, ...]  # new blots on points where the play hit; they can be hit in return
    slots: tuple[int, ...]  # other new blots on the points 4 to 7
    unstacked: tuple[int, ...]  # points with five checkers or more that have fewer after the play
    back_before: int  # checkers in the other player's home board and on the bar before the play
    back: int  # checkers in the other player's home board and on the bar after the play
    runs: int  # checkers that move from the point 18 or behind it to the point 15 or further
    prime_before: int  # length of the longest prime (made points in a row) before the play
    prime: int  # length of the longest prime after the play
    contact_before: bool  # True if there is contact between the sides before the play
    contact: bool  # True if there is contact after the play

    @property
    def anchors_made(self) -> tuple[int, ...]:
        """Points that the play makes in the other player's home board."""
        return tuple(point for point in self.points_made if point >= BACK)

    @property
    def anchors_broken(self) -> tuple[int, ...]:
        """Points that the play breaks in the other player's home board."""
        return tuple(point for point in self.broken if point >= BACK)

    @property
    def left_back(self) -> int:
        """Number of checkers that leave the other player's home board and the bar."""
        return max(0, self.back_before - self.back)

    @property
    def breaks_contact(self) -> bool:
        """True if the play turns the game into a race."""
        return self.contact_before and not self.contact


def play_features(before: Position, after: Position) -> PlayFeatures:
    """Return the effects of a play; both positions are from the side of its player."""
    own, new = before.own, after.own
    # The bar is not a point.
    pairs = list(zip(range(1, POINTS + 1), own, new, strict=False))
    fewer = [after.other[index] < before.other[index] for index in range(POINTS)]
    hit = tuple(POINTS - index for index in range(POINTS) if fewer[index])
    new_blots = [point for point, was, now in pairs if now == 1 and was == 0]
    return PlayFeatures(
        hits=after.other[BAR] - before.other[BAR],
        hit_points=hit,
        entered=max(0, own[BAR] - new[BAR]),
        borne_off=sum(own) - sum(new),
        pips=pips(own) - pips(new),
        points_made=tuple(point for point, was, now in pairs if was < 2 <= now),
        broken=tuple(point for point, was, now in pairs if now < 2 <= was),
        blots=tuple(point for point, _, now in pairs if now == 1),
        loose=tuple(point for point in new_blots if point in hit),
        slots=tuple(point for point in new_blots if point in _SLOTS and point not in hit),
        unstacked=tuple(point for point, was, now in pairs if was >= _HEAVY and now < was),
        back_before=back_checkers(own),
        back=back_checkers(new),
        runs=_runs(own, new),
        prime_before=longest_prime(own),
        prime=longest_prime(new),
        contact_before=before.in_contact,
        contact=after.in_contact,
    )


def back_checkers(side: Side) -> int:
    """Return the number of a side's checkers in the other player's home board and on the bar."""
    return sum(side[BACK - 1 :])


def longest_prime(side: Side) -> int:
    """Return the length of a side's longest row of made points."""
    longest = run = 0
    for count in side[:POINTS]:
        run = run + 1 if count >= 2 else 0
        longest = max(longest, run)
    return longest


def phase(position: Position) -> Phase:
    """Return the phase of a position: the first of these that applies.

    - ``bear-off``: no contact, and the player on roll has all checkers at home.
    - ``race``: no contact.
    - ``contact bear-off``: contact, and a side has all its checkers at home.
    - ``opening``: at most 8 of the 30 checkers have left their initial points.
    - ``back game``: a side holds two points or more in the other's home board, and is 20 pips or
      more behind.
    - ``holding``: one side has no checker on its 18 point or behind it, and the other holds a
      point there.
    - ``middle``: anything else.
    """
    sides = (position.own, position.other)
    if not position.in_contact:
        return "race" if any(position.own[HOME:]) else "bear-off"
    if any(not any(side[HOME:]) for side in sides):
        return "contact bear-off"
    unmoved = sum(map(min, (*position.own, *position.other), (*START.own, *START.other)))
    if 2 * CHECKERS - unmoved <= _OPENING:
        return "opening"
    for side, other in (sides, sides[::-1]):
        anchors = sum(count >= 2 for count in side[BACK - 1 : POINTS])
        if anchors >= 2 and pips(side) - pips(other) >= _BEHIND:
            return "back game"
    for side, other in (sides, sides[::-1]):
        if not any(side[EDGE - 1 :]) and any(count >= 2 for count in other[EDGE - 1 : POINTS]):
            return "holding"
    return "middle"


def hitting_rolls(position: Position, beyond: int = 0) -> int:
    """Return the number of rolls, of 36, with which the player on roll can hit.

    Only blots beyond a point count; 6 excludes blots in this player's home board. A hit also counts
    if it is illegal because more of the roll can be played without it.
    """
    own, other = position.own, position.other
    blots = {POINTS - start for start in range(POINTS) if other[start] == 1}
    blots = {point for point in blots if point > beyond}
    if not blots:
        return 0
    # True for points to which a checker may move.
    free = [False, *(other[POINTS - end] < 2 for end in range(1, POINTS + 1))]
    starts = [BAR + 1] if own[BAR] else [start for start in range(1, BAR + 1) if own[start - 1]]
    not_doubles = sum(
        _hits_in_order(large, small, starts, own, blots, free)
        or _hits_in_order(small, large, starts, own, blots, free)
        for large in range(1, 7)
        for small in range(1, large)
    )
    return 2 * not_doubles + sum(_hits_double(die, own, blots, free) for die in range(1, 7))


def _hits_in_order(
    first: int, second: int, starts: list[int], own: Side, blots: set[int], free: list[bool]
) -> bool:
    """Return True if two dice, played in this order, hit a blot."""
    for start in starts:
        end = start - first
        if end < 1 or not free[end]:
            continue
        if end in blots or (own[BAR] < 2 and end - second in blots):
            return True
    # After the only checker on the bar has entered, any checker may play the second die.
    return (
        own[BAR] == 1
        and free[BAR + 1 - first]
        and any(point - second in blots for point in range(1, BAR + 1) if own[point - 1])
    )


def _hits_double(die: int, own: Side, blots: set[int], free: list[bool]) -> bool:
    steps = 4
    if own[BAR]:
        entered = BAR + 1 - die
        if not free[entered]:
            return False
        if entered in blots:
            return True
        steps -= own[BAR]
    starts = [point for point in range(1, BAR + 1) if own[point - 1]]
    if own[BAR]:
        starts.append(BAR + 1 - die)
    return steps > 0 and any(
        end in blots for point in starts for end in _reached(point, die, steps, free)
    )


def _reached(point: int, die: int, steps: int, free: list[bool]) -> Iterator[int]:
    """Yield the points that a checker reaches with up to ``steps`` times the same die."""
    for _ in range(steps):
        point -= die
        if point < 1 or not free[point]:
            return
        yield point


def _runs(own: Side, new: Side) -> int:
    """Return the number of checkers that run, if no checker overtakes another."""
    if own[EDGE - 1 :] == new[EDGE - 1 :]:
        return 0
    return sum(
        was >= EDGE and now <= _RUN_TO
        for was, now in zip(_checker_points(own), _checker_points(new), strict=True)
    )


def _checker_points(side: Side) -> list[int]:
    """Return the point of each checker of a side, the furthest from home first; 0 is off."""
    points = [point for point in range(BAR + 1, 0, -1) for _ in range(side[point - 1])]
    return points + [0] * (CHECKERS - len(points))
