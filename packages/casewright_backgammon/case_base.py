"""The shipped case base: decisions of games that the engine played against itself.

2,000 decisions of GNU Backgammon 1.07 at two plies, for money without the Jacoby rule, the cube at
1 in the middle and never turned, seed 0. ``casewright finetune backgammon-cases`` regenerates them.
"""

from __future__ import annotations

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
from casewright_backgammon.decision import Candidate, Decision, read_decisions
from casewright_backgammon.engine import Engine
from casewright_backgammon.moves import Dice, legal_plays
from casewright_backgammon.position import START, Position

#: The shipped decisions.
FILE = Path(__file__).parent / "data" / "cases.jsonl"
#: Most plays of a decision, and plies of look-ahead.
MOST = 5
PLIES = 2
#: Games that are played at a time: decisions of a run of the engine.
_GAMES = 16
#: Temperature of the softmax that draws a play, in points: a decision loses some 0.02.
_TEMPERATURE = 0.08
_DIGITS = 3


@dataclass(slots=True)
class _Game:
    """A running game."""

    name: str
    rolls: random.Random
    position: Position = START
    dice: Dice = (1, 2)

    def roll(self) -> None:
        self.dice = self.rolls.randint(1, 6), self.rolls.randint(1, 6)
        # The opening roll is one die of each player, thrown again where they are equal.
        while self.position == START and self.dice[0] == self.dice[1]:
            self.dice = self.rolls.randint(1, 6), self.rolls.randint(1, 6)

    def go_on(self, after: Position) -> bool:
        """Let the other player roll; return True if the game is over instead."""
        self.position = after.flipped
        if not any(after.own):
            return True
        self.roll()
        return False

    def next_decision(self) -> bool:
        """Play forced plays up to the next decision; return True if the game is over before it."""
        while len(plays := legal_plays(self.position, self.dice)) == 1:
            if self.go_on(plays[0].after):
                return True
        return False


def generate_decisions(
    engine: Engine, count: int, seed: int = 0, show: bool | None = None
) -> list[Decision]:
    """Return decisions of games that the engine plays against itself.

    The play that is made is drawn among the best ones, with a softmax of their equities, so that
    games differ and decisions have errors. A decision is left out if all its plays have the same
    equity, or if the same roll of the same position came before.

    Args:
        engine: Analyses each decision.
        count: Number of decisions; the games that run then are not finished.
        seed: Of rolls and plays. With the same version of the engine, the result is the same.
        show: Show a progress bar; ``None`` shows it on a terminal.

    Raises:
        InputError: The count is not above 0.
        ToolError: The engine failed.
    """
    if count < 1:
        raise InputError(f"{count} decisions cannot be made; give a number above 0.")
    decisions: dict[tuple[str, Dice], Decision] = {}
    games: list[_Game] = []
    started = 0
    with progress_bar("Playing decisions", count, show=show) as advance:
        while len(decisions) < count:
            before = len(decisions)
            while len(games) < _GAMES:
                started += 1
                name = f"s{seed}-{started:04}"
                games.append(_Game(name, random.Random(name)))
                games[-1].roll()
            games = [game for game in games if not game.next_decision()]
            situations = [(game.position, game.dice) for game in games]
            going_on = []
            analysed = engine.analyse(situations, PLIES, MOST)
            for game, candidates in zip(games, analysed, strict=True):
                decision = _decision(game, [_rounded(candidate) for candidate in candidates])
                if decision.lost(len(candidates) - 1) > 0:
                    high, low = max(decision.dice), min(decision.dice)
                    decisions.setdefault((decision.position.id, (high, low)), decision)
                if not game.go_on(decision.after(decision.played_or_best)):
                    going_on.append(game)
            games = going_on
            advance(min(len(decisions), count) - before)
    return list(decisions.values())[:count]


def write_case_base(file: Path, decisions: Sequence[Decision]) -> None:
    """Write decisions as JSON Lines, and create the folder.

    Raises:
        InputError: The file cannot be written.
    """
    lines = [json.dumps(decision.to_dict(), separators=(",", ":")) for decision in decisions]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{file} cannot be written: {error.strerror}. Give a file that you may write."
        ) from error


@cache
def shipped_decisions() -> tuple[Decision, ...]:
    """Return the shipped decisions."""
    return tuple(read_decisions(FILE))


def case_file() -> Path:
    """Return the file of the case base: the shipped one, or ``CASEWRIGHT_BACKGAMMON_CASES``.

    The environment variable names a file of other analysed games; see ``decision.read_decisions``.

    Raises:
        InputError: There is no such file.
    """
    named = os.environ.get("CASEWRIGHT_BACKGAMMON_CASES")
    if named and not Path(named).is_file():
        raise InputError(f"CASEWRIGHT_BACKGAMMON_CASES names {named}, which is no file.")
    return Path(named) if named else FILE


def _decision(game: _Game, candidates: Sequence[Candidate]) -> Decision:
    best = candidates[0].equity
    weights = [exp((candidate.equity - best) / _TEMPERATURE) for candidate in candidates]
    played = game.rolls.choices(range(len(candidates)), weights)[0]
    return Decision(game.name, game.position, game.dice, tuple(candidates), played)


def _rounded(candidate: Candidate) -> Candidate:
    win, win_g, win_bg, lose_g, lose_bg = (round(chance, _DIGITS) for chance in candidate.chances)
    return Candidate(
        candidate.play, round(candidate.equity, _DIGITS), (win, win_g, win_bg, lose_g, lose_bg)
    )
