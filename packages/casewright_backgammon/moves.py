"""The legal plays of a roll, and the positions after them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from casewright.errors import InputError
from casewright_backgammon.position import BAR, HOME, POINTS, Position, Side, furthest_point

#: A checker's step: start point (25 is the bar), end point (0 is off), and True for a hit.
Step = tuple[int, int, bool]
#: The two numbers of a roll.
Dice = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Play:
    """A legal play of a roll."""

    steps: tuple[Step, ...]  # the steps of checkers, one per die, in a legal order
    after: Position  # the position after the steps, from the side of the player who made them

    @property
    def text(self) -> str:
        """The play in the players' notation: ``24/18 13/11``, ``bar/20*``, ``6/off(2)``.

        The steps of a checker are joined; a point between two is named only for a hit there.
        """
        if not self.steps:
            return "cannot move"
        chains: list[list[Step]] = []
        for step in self.steps:
            for chain in chains:
                # Steps that meet on a point are joined, since its checkers are interchangeable.
                if chain[-1][1] == step[0]:
                    chain.append(step)
                    break
                if chain[0][0] == step[1]:
                    chain.insert(0, step)
                    break
            else:
                chains.append([step])
        counts = Counter(sorted((_chain_key(chain) for chain in chains), reverse=True))
        return " ".join(f"{text}({n})" if n > 1 else text for (_, _, text), n in counts.items())


def legal_plays(position: Position, dice: Dice) -> list[Play]:
    """Return the legal plays of a roll, one for each resulting position.

    A legal play uses as many dice as possible. If it uses only one die, this is the larger one if
    possible.

    Returns:
        At least one play; if no checker can move, a play without steps.
    """
    large, small = sorted(require_dice(dice), reverse=True)
    orders = [(large,) * 4] if large == small else [(large, small), (small, large)]
    outcomes = [_play_dice(position, order) for order in orders]
    max_count = max(count for count, _ in outcomes)
    steps_by_after: dict[Position, tuple[Step, ...]] = {}
    for count, order_steps in outcomes:
        if count == max_count:
            for after, steps in order_steps.items():
                steps_by_after.setdefault(after, steps)
            # With one die, plays of the smaller die count only if the larger cannot be played.
            if max_count == 1:
                break
    return [Play(steps, after) for after, steps in steps_by_after.items()]


def require_dice(dice: Dice) -> Dice:
    """Return the dice unchanged; raise ``InputError`` unless they are two numbers from 1 to 6."""
    if len(dice) != 2 or not all(1 <= die <= 6 for die in dice):
        raise InputError(f"A roll is two numbers from 1 to 6, not {dice!r:.40}.")
    return dice


def apply_step(position: Position, start: int, end: int) -> tuple[Position, bool]:
    """Return the position after a step from ``start`` to ``end``, and True if the step hits.

    The step may be of any length. Raise ``InputError`` if ``start`` (25 for the bar) has no
    checker, or the opponent holds the point ``end`` (0 for off).
    """
    own, other = list(position.own), list(position.other)
    if not own[start - 1]:
        raise InputError(f"no checker stands on {_point_name(start)}")
    own[start - 1] -= 1
    is_hit = False
    if end:
        own[end - 1] += 1
        if other[POINTS - end] > 1:
            raise InputError(f"the point {end} is held by the other player")
        if other[POINTS - end]:
            is_hit = True
            other[POINTS - end] = 0
            other[BAR] += 1
    return Position(tuple(own), tuple(other)), is_hit


def _point_name(point: int) -> str:
    return "bar" if point == BAR + 1 else str(point) if point else "off"


def _play_dice(
    position: Position, dice: tuple[int, ...]
) -> tuple[int, dict[Position, tuple[Step, ...]]]:
    """Return how many dice can be played in this order, and the steps to each final position."""
    steps_by_after: dict[Position, tuple[Step, ...]] = {position: ()}
    for count, die in enumerate(dice):
        longer_steps: dict[Position, tuple[Step, ...]] = {}
        for before, steps in steps_by_after.items():
            for start, end in _legal_steps(before.own, before.other, die):
                after, is_hit = apply_step(before, start, end)
                # Of several sequences to the same position, keep the first.
                longer_steps.setdefault(after, (*steps, (start, end, is_hit)))
        if not longer_steps:
            return count, steps_by_after
        steps_by_after = longer_steps
    return len(dice), steps_by_after


def _legal_steps(own: Side, other: Side, die: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the legal steps of a die.

    Checkers on the bar move first, and a checker is borne off only if all checkers are at home.
    """
    furthest = furthest_point(own)
    starts = [BAR + 1] if own[BAR] else [p for p in range(furthest, 0, -1) if own[p - 1]]
    for start in starts:
        end = start - die
        if end >= 1:
            if other[POINTS - end] < 2:
                yield start, end
        elif furthest <= HOME and (end == 0 or start == furthest):
            yield start, 0


def _chain_key(chain: list[Step]) -> tuple[int, int, str]:
    """Return the start, end and text of a checker's joined steps, to sort and count these."""
    text = _point_name(chain[0][0])
    for number, (_, end, is_hit) in enumerate(chain, 1):
        if is_hit or number == len(chain):
            text += f"/{_point_name(end)}{'*' if is_hit else ''}"
    return chain[0][0], chain[-1][1], text
