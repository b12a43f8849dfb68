"""The legal plays of a roll, and the positions after them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from casewright.errors import InputError
from casewright_backgammon.position import BAR, HOME, POINTS, Position, Side, furthest_point

#: A checker's step: start point (25 is the bar), end point (0 is off), and True for a hit.
Step = tuple[int, int, bool]
Dice = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Play:
    """A way to play a roll."""

    steps: tuple[Step, ...]  # the steps of checkers, one per die, in a legal order
    after: Position  # the position after the steps, still from the side of the player who made them

    @property
    def text(self) -> str:
        """The play in the players' notation: ``24/18 13/11``, ``bar/20*``, ``6/off(2)``."""
        return notation(self.steps)

    @property
    def hits(self) -> int:
        """The number of checkers that the play hits."""
        return sum(hit for _, _, hit in self.steps)


def legal_plays(position: Position, dice: Dice) -> list[Play]:
    """Return the legal plays of a roll, one for each resulting position.

    A legal play uses as many dice as possible, and the larger die if only one can be played.

    Returns:
        At least one play; if no checker can move, a play without steps.
    """
    large, small = sorted(checked_dice(dice), reverse=True)
    orders = [(large,) * 4] if large == small else [(large, small), (small, large)]
    results = [_play_dice(position, order) for order in orders]
    max_count = max(count for count, _ in results)
    steps_to: dict[Position, tuple[Step, ...]] = {}
    for count, positions in results:
        if count == max_count:
            for after, steps in positions.items():
                steps_to.setdefault(after, steps)
            # If only one die can be played, it must be the larger die, which comes first.
            if max_count == 1 and large != small:
                break
    return [Play(steps, after) for after, steps in steps_to.items()]


def checked_dice(dice: Dice) -> Dice:
    """Return dice unchanged; ``InputError`` if they are not two numbers from 1 to 6."""
    if len(dice) != 2 or not all(1 <= die <= 6 for die in dice):
        raise InputError(f"A roll is two numbers from 1 to 6, not {dice!r:.40}.")
    return dice


def apply_step(position: Position, start: int, end: int) -> tuple[Position, bool]:
    """Return the position after a step, for any dice, and True if the step hits.

    The start is 25 for the bar, the end 0 for off. ``InputError`` if there is no checker at the
    start, or the opponent holds the end.
    """
    own, other = list(position.own), position.other
    if not own[start - 1]:
        raise InputError(f"no checker stands on {place_name(start)}")
    own[start - 1] -= 1
    hit = False
    if end:
        own[end - 1] += 1
        opponents = other[POINTS - end]
        if opponents > 1:
            raise InputError(f"the point {end} is held by the other player")
        if opponents:
            hit = True
            others = list(other)
            others[POINTS - end] = 0
            others[BAR] += 1
            other = tuple(others)
    return Position(tuple(own), other), hit


def place_name(point: int) -> str:
    """Return the name of a point in the players' notation: 25 is the bar, 0 is off."""
    return "bar" if point == BAR + 1 else str(point) if point else "off"


def _play_dice(
    position: Position, dice: tuple[int, ...]
) -> tuple[int, dict[Position, tuple[Step, ...]]]:
    """Return how many dice can be played in this order, and the steps to each final position."""
    reached: dict[Position, tuple[Step, ...]] = {position: ()}
    for number, die in enumerate(dice):
        further: dict[Position, tuple[Step, ...]] = {}
        for before, steps in reached.items():
            for start, end in _steps(before.own, before.other, die):
                after, hit = apply_step(before, start, end)
                # Of several sequences to the same position, keep the first.
                further.setdefault(after, (*steps, (start, end, hit)))
        if not further:
            return number, reached
        reached = further
    return len(dice), reached


def _steps(own: Side, other: Side, die: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the legal steps of a die.

    Checkers on the bar move first, and a checker is borne off only if all checkers are at home.
    """
    back = furthest_point(own)
    starts = [BAR + 1] if own[BAR] else [point for point in range(back, 0, -1) if own[point - 1]]
    for start in starts:
        end = start - die
        if end >= 1:
            if other[POINTS - end] < 2:
                yield start, end
        elif back <= HOME and (end == 0 or start == back):
            yield start, 0


def notation(steps: Sequence[Step]) -> str:
    """Return steps in the players' notation; the steps of a checker are joined.

    A point between the steps of a checker is named only if there is a hit on it.
    """
    if not steps:
        return "cannot move"
    chains: list[list[Step]] = []
    for step in steps:
        for chain in chains:
            # Checkers on a point are interchangeable, so the steps are joined.
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


def _chain_key(chain: list[Step]) -> tuple[int, int, str]:
    """Return start, end and text of the joined steps of a checker."""
    text = place_name(chain[0][0])
    for number, (_, end, hit) in enumerate(chain, 1):
        if hit or number == len(chain):
            text += f"/{place_name(end)}{'*' if hit else ''}"
    return chain[0][0], chain[-1][1], text
