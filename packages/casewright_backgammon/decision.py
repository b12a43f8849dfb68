"""Decisions with an engine's analysis: a position, a roll, and what its best plays are worth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright_backgammon.moves import Dice, checked_dice
from casewright_backgammon.play_text import written_play
from casewright_backgammon.position import HOME, POINTS, Position, position_of_id
from casewright.errors import InputError

#: Win, win a gammon, win a backgammon, lose a gammon, lose a backgammon; probabilities.
Chances = tuple[float, float, float, float, float]


def won_chances(after: Position) -> Chances:
    """Return the chances of the player who has just borne off the last checker.

    It is a gammon where the other has borne none off, and a backgammon where one of them stands in
    the winner's home board or on the bar, too.
    """
    gammon = not after.off[1]
    return 1.0, float(gammon), float(gammon and any(after.other[POINTS - HOME :])), 0.0, 0.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A play that the engine looked at.

    Attributes:
        play: As players write it.
        equity: What it is worth to the player who makes it: points, 1 for a game won.
        chances: Of that player after it.
    """

    play: str
    equity: float
    chances: Chances


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of a game, analysed.

    Attributes:
        game: Which game it is of.
        position: From the side of the player on roll.
        dice: The roll.
        candidates: The best first; not all legal plays, but one that was made is among them.
        played: Place of the play that was made; ``None`` where none was yet.
        value: Chances of the player on roll before the roll; ``None`` where they were not asked.
        engine_class: GNU Backgammon's class of the position: 10 contact, 9 crashed, 8 race, lower
            its bear-off databases; ``None`` where it was not asked.
    """

    game: str
    position: Position
    dice: Dice
    candidates: Sequence[Candidate]
    played: int | None
    value: Chances | None = None
    engine_class: int | None = None

    @property
    def best(self) -> Candidate:
        """The play that is worth most."""
        return self.candidates[0]

    @property
    def played_or_best(self) -> int:
        """Place of the play that was made, of the best one where none was."""
        return self.played or 0

    def lost(self, place: int) -> float:
        """Return how much equity a candidate gives up against the best one; 0 or more."""
        return self.best.equity - self.candidates[place].equity

    def after(self, place: int) -> Position:
        """Return where a candidate leads, from the side of the player who made it."""
        return written_play(self.position, self.candidates[place].play)[0]

    def to_dict(self) -> dict[str, Any]:
        """Return it JSON-plain, as ``decision_of`` reads it."""
        return {
            "game": self.game,
            "position_id": self.position.id,
            "dice": list(self.dice),
            "played": self.played,
            "candidates": [
                {"move": one.play, "equity": one.equity, "probs": list(one.chances)}
                for one in self.candidates
            ],
        }


def decision_of(read: dict[str, Any]) -> Decision:
    """Return a decision that was read from JSON.

    Raises:
        InputError: Something is missing, of another kind, or impossible; says what.
    """
    try:
        first, second = read["dice"]
        candidates = [
            Candidate(str(one["move"]), float(one["equity"]), _chances(one["probs"]))
            for one in read["candidates"]
        ]
        if not candidates:
            raise ValueError("no candidate")
        # The engine looks deeper at some than at others, and leaves their order as it was.
        played = None if read["played"] is None else candidates[read["played"]]
        candidates.sort(key=lambda one: -one.equity)
        found = Decision(
            str(read["game"]),
            position_of_id(read["position_id"]),
            checked_dice((first, second)),
            tuple(candidates),
            None if played is None else candidates.index(played),
            *value_of(read.get("value")),
        )
        for place in range(len(candidates)):
            found.after(place)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"This is no analysed decision: {type(error).__name__}: {error}") from None
    return found


def value_of(read: dict[str, Any] | None) -> tuple[Chances | None, int | None]:
    """Return what a position is worth before the roll, and the engine's class of it.

    Raises:
        KeyError, TypeError, ValueError: Something is missing, or no number.
    """
    if read is None:
        return None, None
    chances = _chances([read[name] for name in ("win", "win_g", "win_bg", "lose_g", "lose_bg")])
    return chances, int(read["class"])


def _chances(read: Sequence[Any]) -> Chances:
    win, win_g, win_bg, lose_g, lose_bg = map(float, read)
    return win, win_g, win_bg, lose_g, lose_bg


def read_decisions(file: Path) -> list[Decision]:
    """Return the decisions of a file with one as JSON a line.

    Raises:
        InputError: The file cannot be read, or a line is no decision; names the line.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {type(error).__name__}.") from error
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(decision_of(json.loads(line)))
        except (InputError, json.JSONDecodeError) as error:
            raise InputError(f"{file}, line {number}: {error}") from None
    return found
