"""Decisions with an engine's analysis: a position, a roll, and the equities of the best plays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from casewright.errors import InputError, one_line
from casewright_backgammon.moves import Dice, require_dice
from casewright_backgammon.play_text import parse_play
from casewright_backgammon.position import HOME, POINTS, Position, position_of_id

T = TypeVar("T")
#: Probabilities: win, win a gammon or more, win a backgammon, lose a gammon or more, a backgammon.
Chances = tuple[float, float, float, float, float]


def chances_after_win(after: Position) -> Chances:
    """Return the chances of a player who has just won; ``after`` is from this player's side.

    The win is a gammon if the other player has borne off no checker, and a backgammon if that
    player also has a checker in the winner's home board or on the bar.
    """
    is_gammon = not after.off[1]
    return 1.0, float(is_gammon), float(is_gammon and any(after.other[POINTS - HOME :])), 0.0, 0.0


def flipped_chances(chances: Chances) -> Chances:
    """Return the chances of the other player."""
    win, win_g, win_bg, lose_g, lose_bg = chances
    return 1 - win, lose_g, lose_bg, win_g, win_bg


@dataclass(frozen=True, slots=True)
class AnalysedPlay:
    """A play with its analysis."""

    play: str  # the play in the players' notation
    equity: float  # equity of the player who makes the play, in points; 1 for a single win
    chances: Chances  # chances of this player after the play


@dataclass(frozen=True, slots=True)
class Decision:
    """An analysed decision in a game."""

    game: str  # the name of the game; "asked" for a question without a game
    position: Position  # the position from the side of the player on roll
    dice: Dice  # the roll
    #: Some of the legal plays, the best first; they include the play that was made, if any.
    candidates: Sequence[AnalysedPlay]
    made_rank: int | None  # index of the play that was made; None if no play was made
    #: Chances of the player on roll before the roll; ``None`` if unknown.
    chances_before_roll: Chances | None = None
    #: GNU Backgammon's class of the position: 10 contact, 9 crashed, 8 race, lower numbers for
    #: bear-off databases; ``None`` if unknown.
    engine_class: int | None = None

    @property
    def best(self) -> AnalysedPlay:
        """The play with the highest equity."""
        return self.candidates[0]

    @property
    def made_or_best_rank(self) -> int:
        """Rank of the play that was made, or of the best play if no play was made."""
        return self.made_rank or 0

    def equity_loss(self, rank: int) -> float:
        """Return the equity loss of a candidate against the best candidate; 0 or more."""
        return self.best.equity - self.candidates[rank].equity

    def after(self, rank: int) -> Position:
        """Return the position after a candidate, from the side of the player who made it."""
        return parse_play(self.position, self.candidates[rank].play)[0]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values for ``decision_of``, without the analysis before the roll."""
        return {
            "game": self.game,
            "position_id": self.position.id,
            "dice": list(self.dice),
            "played": self.made_rank,
            "candidates": [
                {"move": play.play, "equity": play.equity, "probs": list(play.chances)}
                for play in self.candidates
            ],
        }


def decision_of(record: dict[str, Any]) -> Decision:
    """Return a record's decision; raise ``InputError`` for a missing or invalid field."""
    try:
        first, second = record["dice"]
        chances_before_roll, engine_class = parse_position_analysis(record.get("value"))
        candidates = [
            AnalysedPlay(str(row["move"]), float(row["equity"]), chances_of(row["probs"]))
            for row in record["candidates"]
        ]
        if not candidates:
            raise ValueError("no candidate")
        # ``played`` is an index before sorting: GNU Backgammon puts the deepest analyses first.
        index = record["played"]
        made_play = None if index is None else candidates[index]
        candidates.sort(key=lambda candidate: -candidate.equity)
        decision = Decision(
            str(record["game"]),
            position_of_id(record["position_id"]),
            require_dice((first, second)),
            tuple(candidates),
            None if made_play is None else candidates.index(made_play),
            chances_before_roll,
            engine_class,
        )
        for rank in range(len(candidates)):
            decision.after(rank)  # raises InputError if the play is impossible
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(
            f"This is not an analysed decision: {type(error).__name__}: {error}"
        ) from None
    return decision


def parse_position_analysis(
    record: dict[str, Any] | None,
) -> tuple[Chances | None, int | None]:
    """Return a position's chances before the roll, and its engine class; ``None`` if unknown.

    Raises:
        KeyError, TypeError, ValueError: A field is missing, or is not a number.
    """
    if record is None:
        return None, None
    names = ("win", "win_g", "win_bg", "lose_g", "lose_bg")
    return chances_of(record[name] for name in names), int(record["class"])


def chances_of(numbers: Iterable[Any]) -> Chances:
    """Return five numbers as chances; raise ``TypeError`` or ``ValueError`` for anything else."""
    win, win_g, win_bg, lose_g, lose_bg = map(float, numbers)
    return win, win_g, win_bg, lose_g, lose_bg


def read_decisions(file: Path) -> list[Decision]:
    """Return the decisions of a JSON Lines file; see ``read_lines`` for errors."""
    return read_lines(file, decision_of)


def read_lines(file: Path, parse: Callable[[Any], T]) -> list[T]:
    """Parse each line of a JSON Lines file; raise ``InputError`` for an invalid file or line."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {type(error).__name__}.") from error
    values = []
    for number, line in enumerate(lines, 1):
        try:
            values.append(parse(json.loads(line)))
        except InputError as error:
            raise InputError(f"{file}, line {number}: {error}") from None
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{file}, line {number}: {one_line(error)}") from None
    return values
