"""Analysed decisions, split by games into queries and cases."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from casewright.errors import InputError
from casewright_backgammon.decision import Chances, Decision, read_decisions
from casewright_backgammon.latent_training import read_pool
from casewright_backgammon.position import Position

DECISIONS, POOL = "decisions-dev.jsonl", "wildbg_positions.jsonl"
#: Number of parts.
PARTS = 5


@dataclass(frozen=True, slots=True)
class Split:
    """Cases and queries of different games.

    Attributes:
        cases: For retrieval and for training.
        queries: Decisions of other games, whose positions are not in or after a case.
        pool: Valued positions beside the games, for training; none of a query.
        left_out: Number of decisions of the queries' games with positions of cases: mostly
            openings.
    """

    cases: Sequence[Decision]
    queries: Sequence[Decision]
    pool: Sequence[tuple[Position, Chances]]
    left_out: int


def read_split(folder: Path) -> Split:
    """Read the decisions and the pool, and split them.

    Raises:
        InputError: The folder lacks a file, or a file has another format.
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
    """Return the games of one part as queries, and the others as cases.

    Args:
        decisions: Of all games.
        pool: Positions beside them.
        part: The part of the queries, 0 to 4.

    Raises:
        InputError: There would be no cases or no queries.
    """
    cases = [decision for decision in decisions if part_of(decision.game) != part]
    held = [decision for decision in decisions if part_of(decision.game) == part]
    known = {decision.position for decision in cases}
    # Positions after the cases' candidates are learned, too.
    known |= {
        decision.after(rank).flipped
        for decision in cases
        for rank in range(len(decision.candidates))
    }
    queries = [decision for decision in held if decision.position not in known]
    if not cases or not queries:
        raise InputError("There are too few games to ask some by the others. Give more of them.")
    # Positions after a query's candidates may be in the pool, too.
    shown = {decision.position for decision in queries}
    shown |= {
        decision.after(rank).flipped
        for decision in queries
        for rank in range(len(decision.candidates))
    }
    apart = [(position, chances) for position, chances in pool if position not in shown]
    return Split(cases, queries, apart, len(held) - len(queries))


def part_of(game: str) -> int:
    """Return the part of a game, a hash of its name: 0 to 4."""
    return hashlib.sha256(game.encode()).digest()[0] % PARTS
