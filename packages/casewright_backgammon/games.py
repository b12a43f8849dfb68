"""Analysed decisions, split by games: those of some games are asked, all others are cases."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from casewright_backgammon.decision import Chances, Decision, read_decisions
from casewright_backgammon.latent_training import read_pool
from casewright_backgammon.position import Position
from casewright.errors import InputError

DECISIONS, POOL = "decisions-dev.jsonl", "wildbg_positions.jsonl"
#: One game of so many is asked.
PARTS = 5


@dataclass(frozen=True, slots=True)
class Split:
    """Cases and queries of different games.

    Attributes:
        cases: What is retrieved, and what networks learn from.
        queries: Decisions of other games, of positions that no case has or leads to.
        pool: Valued positions beside the games, for training; none of a query.
        left_out: Decisions of the asked games of such positions: openings, mostly.
    """

    cases: Sequence[Decision]
    queries: Sequence[Decision]
    pool: Sequence[tuple[Position, Chances]]
    left_out: int


def read_split(folder: Path) -> Split:
    """Read the decisions and the pool, and split them.

    Raises:
        InputError: The folder lacks a file, or it has another form.
    """
    missing = [name for name in (DECISIONS, POOL) if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{folder} lacks {' and '.join(missing)}. Give the folder with both files."
        )
    return split_games(read_decisions(folder / DECISIONS), read_pool(folder / POOL), part=0)


def split_games(
    decisions: Sequence[Decision], pool: Sequence[tuple[Position, Chances]], part: int
) -> Split:
    """Ask the games of one part, and make cases of the others.

    Args:
        decisions: Of all games.
        pool: Positions beside them.
        part: Which of the five parts is asked, 0 to 4.

    Raises:
        InputError: One of the two sides would be empty.
    """
    cases = [one for one in decisions if part_of(one.game) != part]
    asked = [one for one in decisions if part_of(one.game) == part]
    known = {one.position for one in cases}
    # Where the cases' candidates lead is learned, too.
    known |= {one.after(place).flipped for one in cases for place in range(len(one.candidates))}
    queries = [one for one in asked if one.position not in known]
    if not cases or not queries:
        raise InputError("There are too few games to ask some by the others. Give more of them.")
    # A position after a play of an asked game may be in a pool, too.
    shown = {one.position for one in queries}
    shown |= {one.after(place).flipped for one in queries for place in range(len(one.candidates))}
    apart = [(position, chances) for position, chances in pool if position not in shown]
    return Split(cases, queries, apart, len(asked) - len(queries))


def part_of(game: str) -> int:
    """Return the part of a game, drawn by its name: 0 to 4."""
    return hashlib.sha256(game.encode()).digest()[0] % PARTS
