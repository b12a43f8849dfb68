"""Split of analysed decisions, by game, into queries and cases."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from casewright.errors import InputError
from casewright_backgammon.decision import Chances, Decision, read_decisions
from casewright_backgammon.latent_training import read_pool
from casewright_backgammon.position import Position

#: Names of the files with the analysed decisions, and with more analysed positions.
DECISIONS, POOL = "decisions-dev.jsonl", "wildbg_positions.jsonl"
#: Number of parts into which the games are divided.
PART_COUNT = 5


@dataclass(frozen=True, slots=True)
class Split:
    """Cases and queries from different games."""

    cases: Sequence[Decision]  # decisions for retrieval and for training
    queries: Sequence[Decision]  # decisions of other games; no case contains their positions
    #: Further positions with chances, for training; no query contains one of these positions.
    pool: Sequence[tuple[Position, Chances]]
    #: Number of decisions that are left out of the queries, because a case contains their position
    #: (mostly openings).
    omitted_count: int


def read_split(folder: Path) -> Split:
    """Return the split of a folder's decisions; raise ``InputError`` for a missing or bad file."""
    if missing := [name for name in (DECISIONS, POOL) if not (folder / name).is_file()]:
        raise InputError(
            f"{folder} lacks {' and '.join(missing)}. Give the folder that has both files."
        )
    return split_games(read_decisions(folder / DECISIONS), read_pool(folder / POOL), part=0)


def split_games(
    decisions: Sequence[Decision], pool: Sequence[tuple[Position, Chances]], part: int
) -> Split:
    """Return a split with the games of ``part`` (0 to 4) as queries and the other games as cases.

    Raise ``InputError`` if there would be no cases or no queries.
    """
    cases = [decision for decision in decisions if part_of(decision.game) != part]
    part_decisions = [decision for decision in decisions if part_of(decision.game) == part]
    case_positions = _positions(cases)
    queries = [decision for decision in part_decisions if decision.position not in case_positions]
    if not cases or not queries:
        raise InputError("There are too few games for both queries and cases. Give more games.")
    query_positions = _positions(queries)
    remaining_pool = [example for example in pool if example[0] not in query_positions]
    return Split(cases, queries, remaining_pool, len(part_decisions) - len(queries))


def _positions(decisions: Sequence[Decision]) -> set[Position]:
    """Return all positions that decisions contain: their own, and those after their candidates."""
    return {decision.position for decision in decisions} | {
        decision.after(rank).flipped
        for decision in decisions
        for rank in range(len(decision.candidates))
    }


def part_of(game: str) -> int:
    """Return the part of a game, a number from 0 to 4, by a hash of the game's name."""
    return hashlib.sha256(game.encode()).digest()[0] % PART_COUNT
