"""The plays that a roll allows, and what stands on the board after them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from casewright_backgammon.position import BAR, HOME, POINTS, Position, Side, last
from casewright.errors import InputError

#: A checker's step: from a place (25 is the bar) to a place (0 is off), and whether it hits.
Step = tuple[int, int, bool]
Dice = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Play:
    """One way to play a roll.

    Attributes:
        steps: The checkers' steps, each of one die, in an order in which they can be made.
        after: The position after them, still from the side of the player who made them.
    """

    steps: tuple[Step, ...]
    after: Position

    @property
    def text(self) -> str:
        """The play as players write it: ``24/18 13/11``, ``bar/20*``, ``6/off(2)``."""
        return notation(self.steps)

    @property
    def hits(self) -> int:
        """How many checkers it hits."""
        return sum(hit for _, _, hit in self.steps)


def legal_plays(position: Position, dice: Dice) -> list[Play]:
    """Return the legal plays of a roll, one for each position that they lead to.

    As many dice as can be are played, and the larger one where only one of two can.

    Returns:
        At least one; where nothing can be moved, the one without a step.
    """
    large, small = sorted(checked_dice(dice), reverse=True)
    orders = [(large,) * 4] if large == small else [(large, small), (small, large)]
    reached = [_furthest(position, order) for order in orders]
    most = max(count for count, _ in reached)
    ways: dict[Position, tuple[Step, ...]] = {}
    for count, found in reached:
        if count == most:
            for after, steps in found.items():
                ways.setdefault(after, steps)
            # With one of two dice it has to be the larger, which is asked first.
            if most == 1 and large != small:
                break
    return [Play(steps, after) for after, steps in ways.items()]


def checked_dice(dice: Dice) -> Dice:
    """Return two dice.

    Raises:
        InputError: They are not two numbers from 1 to 6.
    """
    if len(dice) != 2 or not all(1 <= die <= 6 for die in dice):
        raise InputError(f"A roll is two numbers from 1 to 6, not {dice!r:.40}.")
    return dice


def apply_step(position: Position, start: int, end: int) -> tuple[Position, bool]:
    """Return the position after a step, and whether it hit; legal or not, but for the counts.

    Args:
        position: Before.
        start: A point, or 25 for the bar.
        end: A point, or 0 for off.

    Raises:
        InputError: No checker stands where the step starts, or two of the other's where it ends.
    """
    own, other = list(position.own), position.other
    if not own[start - 1]:
        raise InputError(f"no checker stands on {place_name(start)}")
    own[start - 1] -= 1
    hit = False
    if end:
        own[end - 1] += 1
        there = other[POINTS - end]
        if there > 1:
            raise InputError(f"the point {end} is held by the other player")
        if there:
            hit = True
            others = list(other)
            others[POINTS - end] = 0
            others[BAR] += 1
            other = tuple(others)
    return Position(tuple(own), other), hit


def place_name(place: int) -> str:
    """Return how players write a place: 25 is the bar, 0 is off."""
    return "bar" if place == BAR + 1 else str(place) if place else "off"


def _furthest(
    position: Position, dice: tuple[int, ...]
) -> tuple[int, dict[Position, tuple[Step, ...]]]:
    """Play dice in their order as far as they can be, and return how many, and where that leads."""
    reached: dict[Position, tuple[Step, ...]] = {position: ()}
    for number, die in enumerate(dice):
        further: dict[Position, tuple[Step, ...]] = {}
        for before, steps in reached.items():
            for start, end in _steps(before.own, before.other, die):
                after, hit = apply_step(before, start, end)
                # Of several ways to one position, the first is kept.
                further.setdefault(after, (*steps, (start, end, hit)))
        if not further:
            return number, reached
        reached = further
    return len(dice), reached


def _steps(own: Side, other: Side, die: int) -> Iterator[tuple[int, int]]:
    """Yield the steps that a die allows: from the bar first, off where all are at home."""
    back = last(own)
    starts = [BAR + 1] if own[BAR] else [place for place in range(back, 0, -1) if own[place - 1]]
    for start in starts:
        end = start - die
        if end >= 1:
            if other[POINTS - end] < 2:
                yield start, end
        elif back <= HOME and (end == 0 or start == back):
            yield start, 0


def notation(steps: Sequence[Step]) -> str:
    """Return steps as players write them: a checker's steps joined, equal ones counted.

    A place between is named only where something is hit there.
    """
    if not steps:
        return "cannot move"
    chains: list[list[Step]] = []
    for step in steps:
        for known in chains:
            # Which of two checkers on a point goes on cannot be told, so the steps are joined.
            if known[-1][1] == step[0]:
                known.append(step)
                break
            if known[0][0] == step[1]:
                known.insert(0, step)
                break
        else:
            chains.append([step])
    written = sorted((_chain_key(chain) for chain in chains), reverse=True)
    parts = []
    for (_, _, text), equal in groupby(written):
        count = len(list(equal))
        parts.append(f"{text}({count})" if count > 1 else text)
    return " ".join(parts)


def _chain_key(chain: list[Step]) -> tuple[int, int, str]:
    text = place_name(chain[0][0])
    for number, (_, end, hit) in enumerate(chain, 1):
        if hit or number == len(chain):
            text += f"/{place_name(end)}{'*' if hit else ''}"
    return chain[0][0], chain[-1][1], text
