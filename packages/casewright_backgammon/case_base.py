"""The shipped case base: decisions in games that the engine played against itself.

The 2,000 decisions were analysed by GNU Backgammon 1.07 at two plies. The games are money games
without the Jacoby rule, with the cube always at 1 in the middle. ``casewright finetune
backgammon-cases``, with its default seed 0, generates the case base.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import exp
from pathlib import Path

from casewright.errors import InputError
from casewright.stores.progress import progress_bar
from casewright_backgammon.decision import AnalysedPlay, Decision, chances_of, read_decisions
from casewright_backgammon.engine import GnuBackgammon
from casewright_backgammon.moves import Dice, legal_plays
from casewright_backgammon.position import START, Position

#: The file of the shipped decisions.
CASE_FILE = Path(__file__).parent / "data" / "cases.jsonl"
#: Maximum number of analysed plays of a decision, and number of plies of look-ahead.
MAX_PLAYS, PLIES = 5, 2
#: Number of games in progress at once; a run of the engine analyses one decision of each game.
_GAME_COUNT = 16
#: Temperature, in points, of the softmax from which plays are drawn; they lose about 0.02 points.
_TEMPERATURE = 0.08
#: Number of decimals of equities and chances.
_DECIMALS = 3


@dataclass(slots=True)
class _Game:
    """A game in progress; ``rng`` draws the rolls and the plays of the game."""

    name: str
    rng: random.Random
    position: Position = START
    dice: Dice = (1, 2)  # replaced by the first ``roll``

    def roll(self) -> None:
        self.dice = self.rng.randint(1, 6), self.rng.randint(1, 6)
        # In the opening roll, each player rolls one die; equal dice are rolled again.
        while self.position == START and self.dice[0] == self.dice[1]:
            self.dice = self.rng.randint(1, 6), self.rng.randint(1, 6)

    def play(self, after: Position) -> bool:
        """Make the play that leads to ``after``; then roll, or return False if the game is over."""
        self.position = after.flipped
        if is_unfinished := any(after.own):
            self.roll()
        return is_unfinished

    def play_forced(self) -> bool:
        """Make forced plays up to the next decision; return False if the game is over."""
        while len(plays := legal_plays(self.position, self.dice)) == 1:
            if not self.play(plays[0].after):
                return False
        return True


def generate_decisions(engine: GnuBackgammon, count: int, seed: int = 0) -> list[Decision]:
    """Return decisions of games that the engine plays against itself.

    Each play is drawn from the best plays by a softmax of their equities, so that games differ and
    some plays are errors. A decision is left out if all its plays have the same equity, or if its
    position and roll are those of an earlier decision. The same seed and engine version give the
    same decisions.

    Raises:
        InputError: The count is not above 0.
        ToolError: The engine failed.
    """
    if count < 1:
        raise InputError(f"{count} decisions cannot be made; give a number above 0.")
    decisions: dict[tuple[str, int, int], Decision] = {}
    games: list[_Game] = []
    names = (f"s{seed}-{number:04}" for number in itertools.count(1))
    with progress_bar("Playing decisions", count) as advance:
        while len(decisions) < count:
            count_before = len(decisions)
            for name in itertools.islice(names, _GAME_COUNT - len(games)):
                games.append(_Game(name, random.Random(name)))
                games[-1].roll()
            games = [game for game in games if game.play_forced()]
            situations = [(game.position, game.dice) for game in games]
            unfinished = []
            analyses = engine.analyse(situations, PLIES, MAX_PLAYS)
            for game, candidates in zip(games, analyses, strict=True):
                decision = _decision(game, candidates)
                if decision.equity_loss(len(candidates) - 1) > 0:  # the worst candidate's loss
                    key = (decision.position.id, max(decision.dice), min(decision.dice))
                    decisions.setdefault(key, decision)
                if game.play(decision.after(decision.made_or_best_rank)):
                    unfinished.append(game)
            games = unfinished
            advance(min(len(decisions), count) - count_before)
    return list(decisions.values())[:count]


def write_case_base(file: Path, decisions: Sequence[Decision]) -> None:
    """Write decisions to a JSON Lines file; raise ``InputError`` if it cannot be written."""
    lines = [json.dumps(decision.to_dict(), separators=(",", ":")) for decision in decisions]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{file} cannot be written: {error.strerror}. Give a path that you may write to."
        ) from error


@cache
def shipped_decisions() -> tuple[Decision, ...]:
    """Return the shipped decisions."""
    return tuple(read_decisions(CASE_FILE))


def case_file() -> Path:
    """Return the path of the file of analysed decisions that become cases.

    The environment variable ``CASEWRIGHT_BACKGAMMON_CASES`` replaces the path of the shipped file.
    Raise ``InputError`` if the file does not exist. ``decision.read_decisions`` reads such files.
    """
    path = os.environ.get("CASEWRIGHT_BACKGAMMON_CASES")
    if path and not Path(path).is_file():
        raise InputError(f"CASEWRIGHT_BACKGAMMON_CASES is {path}, which is not a file.")
    return Path(path) if path else CASE_FILE


def _decision(game: _Game, candidates: Sequence[AnalysedPlay]) -> Decision:
    """Return a game's decision, with rounded figures; the softmax draws the made play."""
    candidates = [
        AnalysedPlay(
            candidate.play,
            round(candidate.equity, _DECIMALS),
            chances_of(round(chance, _DECIMALS) for chance in candidate.chances),
        )
        for candidate in candidates
    ]
    best = candidates[0].equity
    weights = [exp((candidate.equity - best) / _TEMPERATURE) for candidate in candidates]
    made_rank = game.rng.choices(range(len(candidates)), weights)[0]
    return Decision(game.name, game.position, game.dice, tuple(candidates), made_rank)
