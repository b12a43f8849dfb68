"""Random positions for drawn boards: from random games, or checkers on random points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from casewright_backgammon.moves import legal_plays
from casewright_backgammon.position import BAR, CHECKERS, PLACES, POINTS, START, Position, flaw

#: Maximum number of plies of a random game.
MAX_PLIES = 90


def random_positions(rng: np.random.Generator) -> Iterator[Position]:
    """Yield possible positions without end: from games, or with checkers on random points."""
    game_positions = _game_positions(rng)
    while True:
        chance = rng.random()
        if chance < 0.4:
            yield next(game_positions)
        elif chance < 0.58:
            yield _scattered(rng, evenness=float(rng.uniform(0.3, 3)), bar_chance=0.25)
        elif chance < 0.66:
            # Both sides bear off.
            yield _scattered(rng, evenness=1.0, bar_chance=0.0, furthest=6, min_checkers=1)
        else:
            # Most of these stacks are tall.
            yield _scattered(rng, evenness=0.25, bar_chance=0.5)


def _game_positions(rng: np.random.Generator) -> Iterator[Position]:
    """Yield positions from games in which both sides make random plays."""
    while True:
        position = START
        for _ in range(MAX_PLIES):
            first, second = rng.integers(1, 7, 2).tolist()
            plays = legal_plays(position, (first, second))
            after = plays[int(rng.integers(len(plays)))].after.flipped
            if not any(after.own) or not any(after.other):
                break
            position = after
            if rng.random() < 0.25 and not flaw(position):
                yield position


def _scattered(
    rng: np.random.Generator,
    *,
    evenness: float,
    bar_chance: float,
    furthest: int = POINTS,
    min_checkers: int = CHECKERS,
) -> Position:
    """Return a position with checkers on random points up to the point ``furthest``.

    ``evenness`` is the concentration of the Dirichlet distribution over points: low values give
    tall stacks. ``bar_chance`` is the probability that a side has checkers on the bar.
    ``min_checkers`` is the minimum number of a side's checkers that are not borne off.
    """
    while True:
        # Each point is open to one player only. The other player counts the points in reverse.
        is_own_point = rng.random(POINTS) < rng.uniform(0.3, 0.7)
        sides = []
        for is_allowed in (is_own_point, ~is_own_point[::-1]):
            allowed = np.flatnonzero(is_allowed[:furthest])
            if len(allowed) == 0:
                break
            point_count = int(rng.integers(1, min(len(allowed), 9) + 1))
            points = rng.choice(allowed, size=point_count, replace=False)
            count = int(rng.integers(min_checkers, CHECKERS + 1))
            side = np.zeros(PLACES, dtype=int)
            if rng.random() < bar_chance:
                side[BAR] = min(int(rng.geometric(0.45)), count)
            shares = rng.dirichlet([evenness] * point_count)
            side[points] = rng.multinomial(count - side[BAR], shares)
            sides.append(tuple(side.tolist()))
        if len(sides) == 2 and not flaw(position := Position(sides[0], sides[1])):
            return position
