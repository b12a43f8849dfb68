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

DECISIONS, POOL = "decisions-dev.jsonl", "wildbg_positions.jsonl"
#: Number of parts of the split.
PARTS = 5


@dataclass(frozen=True, slots=True)
class Split:
    """Cases and queries from different games."""

    cases: Sequence[Decision]  # decisions for retrieval and for training
    #: Decisions of other games; no case has their position, before or after a play.
    queries: Sequence[Decision]
    #: Other positions with chances, for training; no query has them.
    pool: Sequence[tuple[Position, Chances]]
    #: Number of decisions in the queries' games that are not queries, because a case has their
    #: position (mostly openings).
    left_out: int


def read_split(folder: Path) -> Split:
    """Return the split of a folder's decisions; ``InputError`` if a file is missing or invalid."""
    missing = [name for name in (DECISIONS, POOL) if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{folder} lacks {' and '.join(missing)}. Give the folder that has both files."
        )
    return split_games(read_decisions(folder / DECISIONS), read_pool(folder / POOL), part=0)


def split_games(
    decisions: Sequence[Decision], pool: Sequence[tuple[Position, Chances]], part: int
) -> Split:
    """Return a split with the games of one part (0 to 4) as queries, and the others as cases.

    ``InputError`` if there would be no cases or no queries.
    """
    cases = [decision for decision in decisions if part_of(decision.game) != part]
    held_out = [decision for decision in decisions if part_of(decision.game) == part]
    # The positions after the cases' candidates are training examples too.
    known = _positions(cases)
    queries = [decision for decision in held_out if decision.position not in known]
    if not cases or not queries:
        raise InputError("There are too few games for both queries and cases. Give more games.")
    excluded = _positions(queries)
    remaining = [(position, chances) for position, chances in pool if position not in excluded]
    return Split(cases, queries, remaining, len(held_out) - len(queries))


def _positions(decisions: Sequence[Decision]) -> set[Position]:
    """Return the positions of decisions, and those after each candidate."""
    return {decision.position for decision in decisions} | {
        decision.after(rank).flipped
        for decision in decisions
        for rank in range(len(decision.candidates))
    }


def part_of(game: str) -> int:
    """Return the part of a game, a hash of its name: 0 to 4."""
    return hashlib.sha256(game.encode()).digest()[0] % PARTS
