"""Effects of a play on the board, in the players' terms, and the phase of a game.

The terms are from Robertie, "501 Essential Backgammon Problems"; the numeric thresholds are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, groupby
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

#: The number of the bar as the start of a checker's step; points have the numbers 1 to 24.
_BAR_NUMBER = POINTS + 1
#: The bar point, and the golden anchor, which is the other player's five point.
BAR_POINT, GOLDEN_ANCHOR = 7, 20
#: The lowest point of the other player's home board. Checkers on this point, on higher points and
#: on the bar are back checkers.
BACK = POINTS - HOME + 1
#: The other player's bar point. A checker runs if it moves from this point or a higher point to
#: the point ``_RUN_TO`` or a lower point.
OTHER_BAR_POINT, _RUN_TO = BACK - 1, 15
#: Points whose new blots count as slots.
_SLOTS = range(4, BAR_POINT + 1)
#: Minimum number of checkers on a heavy point.
_MIN_HEAVY = 5
#: Maximum number of the 30 checkers that have left their initial points in an opening.
_MAX_OPENING_MOVES = 8
#: Minimum number of pips by which a side is behind in a back game.
_MIN_DEFICIT = 20


@dataclass(frozen=True, slots=True)
class PlayFeatures:
    """The effects of a play, from the side of the player who makes it.

    This player's home board has the points 1 to 6. A made point has two checkers or more; a blot is
    a single checker.
    """

    hits: int  # number of checkers that the play hits
    hit_points: tuple[int, ...]  # points on which checkers are hit, the highest first
    entered: int  # number of checkers that enter from the bar
    borne_off: int  # number of checkers that the play bears off
    pips: int  # number of pips that the play moves
    points_made: tuple[int, ...]  # points that the play makes
    points_broken: tuple[int, ...]  # points that the play breaks
    blots: tuple[int, ...]  # points with blots after the play
    loose_hits: tuple[int, ...]  # points with new blots that hit, and may be hit in return
    slots: tuple[int, ...]  # points from 4 to 7 with new blots that do not hit
    unstacked: tuple[int, ...]  # points with five checkers or more that have fewer after the play
    back_before: int  # number of back checkers before the play
    back: int  # number of back checkers after the play
    runs: int  # number of checkers that move from point 18 or higher to point 15 or lower
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
        return tuple(point for point in self.points_broken if point >= BACK)

    @property
    def left_back(self) -> int:
        """Number of checkers that leave the other player's home board and the bar."""
        return max(0, self.back_before - self.back)

    @property
    def breaks_contact(self) -> bool:
        """True if the play turns the game into a race."""
        return self.contact_before and not self.contact


def play_features(before: Position, after: Position) -> PlayFeatures:
    """Return the effects of a play; both positions are from the side of the player who makes it."""
    old, new = before.own, after.own
    # Each point with its counts before and after. The bar, which is last in a side, is left out.
    counts = list(zip(range(1, POINTS + 1), old, new, strict=False))
    other_counts = zip(range(POINTS, 0, -1), before.other, after.other, strict=False)
    hit_points = tuple(point for point, was, now in other_counts if now < was)
    new_blots = [point for point, was, now in counts if now == 1 and was == 0]
    return PlayFeatures(
        hits=after.other[BAR] - before.other[BAR],
        hit_points=hit_points,
        entered=max(0, old[BAR] - new[BAR]),
        borne_off=sum(old) - sum(new),
        pips=pips(old) - pips(new),
        points_made=tuple(point for point, was, now in counts if was < 2 <= now),
        points_broken=tuple(point for point, was, now in counts if now < 2 <= was),
        blots=tuple(point for point, _, now in counts if now == 1),
        loose_hits=tuple(point for point in new_blots if point in hit_points),
        slots=tuple(point for point in new_blots if point in _SLOTS and point not in hit_points),
        unstacked=tuple(point for point, was, now in counts if was >= _MIN_HEAVY and now < was),
        back_before=sum(old[BACK - 1 :]),
        back=sum(new[BACK - 1 :]),
        runs=_runs(old, new),
        prime_before=longest_prime(old),
        prime=longest_prime(new),
        contact_before=before.in_contact,
        contact=after.in_contact,
    )


def longest_prime(side: Side) -> int:
    """Return the length of a side's longest row of made points."""
    rows = groupby(side[:POINTS], key=lambda count: count >= 2)
    return max((len(list(row)) for is_made, row in rows if is_made), default=0)


def phase(position: Position) -> Phase:
    """Return the phase of a position: the first of these that applies.

    - ``bear-off``: no contact, and the player on roll has all checkers at home.
    - ``race``: no contact.
    - ``contact bear-off``: contact, and a side has all its checkers at home.
    - ``opening``: at most 8 of the 30 checkers have left their initial points.
    - ``back game``: a side holds two points or more in the other side's home board, and is 20 pips
      or more behind.
    - ``holding``: one side has no checker on its 18 point or a higher point, and the other side
      holds its own 18 point or a higher point.
    - ``middle``: anything else.
    """
    sides = (position.own, position.other)
    if not position.in_contact:
        return "race" if any(position.own[HOME:]) else "bear-off"
    if any(not any(side[HOME:]) for side in sides):
        return "contact bear-off"
    unmoved = sum(map(min, (*position.own, *position.other), (*START.own, *START.other)))
    if 2 * CHECKERS - unmoved <= _MAX_OPENING_MOVES:
        return "opening"
    for side, other in (sides, sides[::-1]):
        anchors = sum(count >= 2 for count in side[BACK - 1 : POINTS])
        if anchors >= 2 and pips(side) - pips(other) >= _MIN_DEFICIT:
            return "back game"
    for side, other in (sides, sides[::-1]):
        is_anchored = any(count >= 2 for count in other[OTHER_BAR_POINT - 1 : POINTS])
        if is_anchored and not any(side[OTHER_BAR_POINT - 1 :]):
            return "holding"
    return "middle"


def hitting_rolls(position: Position, beyond: int = 0) -> int:
    """Return the number of rolls, of 36, with which the player on roll can hit.

    Only blots on higher points than ``beyond`` count: 6 excludes this player's home board. A hit
    also counts if it is illegal because more of the roll can be played without the hit.
    """
    own, other = position.own, position.other
    blots = {point for point in range(beyond + 1, POINTS + 1) if other[POINTS - point] == 1}
    if not blots:
        return 0
    # ``free[point]`` is True if a checker may move to the point.
    free = [False, *(count < 2 for count in reversed(other[:POINTS]))]
    pair_count = sum(
        _hits_in_order(large, small, own, blots, free)
        or _hits_in_order(small, large, own, blots, free)
        for large, small in combinations(range(6, 0, -1), 2)
    )
    double_count = sum(_hits_double(die, own, blots, free) for die in range(1, 7))
    return 2 * pair_count + double_count  # two different dice can fall in two ways


def _points(own: Side) -> list[int]:
    """Return the points with a side's checkers, without the bar."""
    return [point for point in range(1, POINTS + 1) if own[point - 1]]


def _hits_in_order(first: int, second: int, own: Side, blots: set[int], free: list[bool]) -> bool:
    """Return True if two dice, played in this order, hit a blot."""
    for start in [_BAR_NUMBER] if own[BAR] else _points(own):
        end = start - first
        if end < 1 or not free[end]:
            continue
        # With two checkers on the bar, the second die must enter the other checker.
        if end in blots or (own[BAR] < 2 and end - second in blots):
            return True
    # After the only checker on the bar has entered, any checker may play the second die.
    all_entered = own[BAR] == 1 and free[_BAR_NUMBER - first]
    return all_entered and any(point - second in blots for point in _points(own))


def _hits_double(die: int, own: Side, blots: set[int], free: list[bool]) -> bool:
    """Return True if the double of a die hits a blot."""
    starts = _points(own)
    if own[BAR]:
        entry = _BAR_NUMBER - die
        if not free[entry]:
            return False
        if entry in blots:
            return True
        starts.append(entry)
    steps = 4 - own[BAR]  # each checker on the bar uses one of the four steps
    for point in starts:
        for end in range(point - die, max(point - steps * die, 1) - 1, -die):
            if not free[end]:
                break
            if end in blots:
                return True
    return False


def _runs(old: Side, new: Side) -> int:
    """Return the number of checkers that run, on the assumption that none overtakes another."""
    pairs = zip(_checker_points(old), _checker_points(new), strict=True)
    return sum(was >= OTHER_BAR_POINT and now <= _RUN_TO for was, now in pairs)


def _checker_points(side: Side) -> list[int]:
    """Return the point of each checker of a side, the furthest from home first; 0 is off."""
    points = [point for point, count in enumerate(side, 1) for _ in range(count)]
    return points[::-1] + [0] * (CHECKERS - len(points))
