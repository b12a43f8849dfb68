"""The domain's own decisions, which ship with it: the engine against itself, not quite at its best.

2,000 decisions of GNU Backgammon 1.07 at two plies, for money without the Jacoby rule, the cube at
1 in the middle and never turned, seed 0. ``casewright finetune backgammon-cases`` makes them again.
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

from casewright_backgammon.decision import Candidate, Decision, read_decisions
from casewright_backgammon.engine import Engine
from casewright_backgammon.moves import Dice, legal_plays
from casewright_backgammon.position import START, Position
from casewright.errors import InputError
from casewright.stores.progress import progress_bar

#: Those that ship.
FILE = Path(__file__).parent / "data" / "cases.jsonl"
#: The plays of a decision, at most, and how far ahead each is looked at.
MOST = 5
PLIES = 2
#: Games at a time, so that a run of the engine analyses as many decisions.
_GAMES = 16
#: Of the softmax by which a play is drawn, in points: some 0.02 are then lost at each decision.
_TEMPERATURE = 0.08
_DIGITS = 3


@dataclass(slots=True)
class _Game:
    """A game that is being played."""

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
        """Let the other player roll; return whether the game is over instead."""
        self.position = after.flipped
        if not any(after.own):
            return True
        self.roll()
        return False

    def next_decision(self) -> bool:
        """Play what is forced; return whether the game is over before something is to decide."""
        while len(plays := legal_plays(self.position, self.dice)) == 1:
            if self.go_on(plays[0].after):
                return True
        return False


def generate_decisions(
    engine: Engine, count: int, seed: int = 0, show: bool | None = None
) -> list[Decision]:
    """Let the engine play against itself, and return decisions of its games.

    The play that is made is drawn among the best ones, the better the likelier, so that games
    differ and decisions have errors. A decision is left out where all plays are worth the same,
    and where the same roll of the same position came before.

    Args:
        engine: Analyses each decision.
        count: How many decisions; the games that are then going on are not finished.
        seed: Of rolls and plays. With the same version of the engine, the result is the same.
        show: Whether to show a bar of progress; ``None`` shows it on a terminal.

    Raises:
        InputError: The count is not above 0.
        ToolError: The engine failed.
    """
    if count < 1:
        raise InputError(f"{count} decisions cannot be made; give a number above 0.")
    found: dict[tuple[str, Dice], Decision] = {}
    games: list[_Game] = []
    started = 0
    with progress_bar("Playing decisions", count, show=show) as advance:
        while len(found) < count:
            before = len(found)
            while len(games) < _GAMES:
                started += 1
                name = f"s{seed}-{started:04}"
                games.append(_Game(name, random.Random(name)))
                games[-1].roll()
            games = [game for game in games if not game.next_decision()]
            asked = [(game.position, game.dice) for game in games]
            going_on = []
            analysed = engine.analyse(asked, PLIES, MOST)
            for game, candidates in zip(games, analysed, strict=True):
                made = _decision(game, [_rounded(one) for one in candidates])
                if made.lost(len(candidates) - 1) > 0:
                    high, low = max(made.dice), min(made.dice)
                    found.setdefault((made.position.id, (high, low)), made)
                if not game.go_on(made.after(made.played_or_best)):
                    going_on.append(game)
            games = going_on
            advance(min(len(found), count) - before)
    return list(found.values())[:count]


def write_case_base(file: Path, decisions: Sequence[Decision]) -> None:
    """Write decisions as JSON, one a line, making the folder where it is missing.

    Raises:
        InputError: The file cannot be written.
    """
    lines = [json.dumps(one.to_dict(), separators=(",", ":")) for one in decisions]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{file} cannot be written: {error.strerror}. Give a file that you may write."
        ) from error


@cache
def shipped_decisions() -> tuple[Decision, ...]:
    """Return the decisions that ship with the package."""
    return tuple(read_decisions(FILE))


def case_file() -> Path:
    """Return the file of the decisions that are cases: those that ship, or others.

    The environment's ``CASEWRIGHT_BACKGAMMON_CASES`` names another one, such as analysed games of
    one's own; see ``decision.read_decisions``.

    Raises:
        InputError: There is no such file.
    """
    named = os.environ.get("CASEWRIGHT_BACKGAMMON_CASES")
    if named and not Path(named).is_file():
        raise InputError(f"CASEWRIGHT_BACKGAMMON_CASES names {named}, which is no file.")
    return Path(named) if named else FILE


def _decision(game: _Game, candidates: Sequence[Candidate]) -> Decision:
    best = candidates[0].equity
    weights = [exp((one.equity - best) / _TEMPERATURE) for one in candidates]
    played = game.rolls.choices(range(len(candidates)), weights)[0]
    return Decision(game.name, game.position, game.dice, tuple(candidates), played)


def _rounded(one: Candidate) -> Candidate:
    win, win_g, win_bg, lose_g, lose_bg = (round(chance, _DIGITS) for chance in one.chances)
    return Candidate(one.play, round(one.equity, _DIGITS), (win, win_g, win_bg, lose_g, lose_bg))
