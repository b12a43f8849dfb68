"""Who says what plays are worth: GNU Backgammon where it is installed, else the trained network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from casewright_backgammon.decision import Candidate, Chances, Decision, won_chances
from casewright_backgammon.engine import Engine, find_engine
from casewright_backgammon.latent import PositionNetwork
from casewright_backgammon.latent_training import other_side
from casewright_backgammon.moves import Dice, Play, legal_plays
from casewright_backgammon.play_text import written_play
from casewright_backgammon.position import Position

#: Plays that an analysis lists.
LISTED = 5
#: How far the engine looks ahead.
PLIES = 2


class Judge(Protocol):
    """Says what plays are worth.

    Attributes:
        name: For people.
        proves: Whether an analysis by it may become a case.
    """

    name: str
    proves: bool

    def analysed(
        self, position: Position, dice: Dice, made: Play | None, also: Sequence[Play]
    ) -> Decision:
        """Return a decision with the best plays, and some others.

        Args:
            position: From the side of the player on roll.
            dice: The roll.
            made: The play that was made, if one was.
            also: Plays that are listed, too, however bad.
        """


class NetworkJudge:
    """The network that ships: one look at each position after a play, no cube, no look-ahead.

    Args:
        network: Trained on the worth of positions.
    """

    name = "the network that ships, without look-ahead"
    proves = False

    def __init__(self, network: PositionNetwork) -> None:
        self._network = network

    def analysed(
        self, position: Position, dice: Dice, made: Play | None, also: Sequence[Play]
    ) -> Decision:
        """See ``Judge``."""
        plays = legal_plays(position, dice)
        worth = self._network.after_equities([play.after for play in plays])
        chances = self._network.chances([play.after.flipped for play in plays])
        known = [
            Candidate(play.text, round(float(value), 3), _after(play, row.tolist()))
            for play, value, row in zip(plays, worth, chances, strict=True)
        ]
        wanted = {play.text for play in ([*also] if made is None else [*also, made])}
        return _decision(position, dice, known, wanted, made)


class EngineJudge:
    """GNU Backgammon, looking two plies ahead, for money.

    Args:
        engine: The program.
    """

    name = "GNU Backgammon, 2 plies ahead"
    proves = True

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def analysed(
        self, position: Position, dice: Dice, made: Play | None, also: Sequence[Play]
    ) -> Decision:
        """See ``Judge``.

        Raises:
            ToolError: The program crashed, took too long, or wrote what cannot be understood.
        """
        # The program lists as many as are asked for, so that every play has its place.
        some = [*also] if made is None else [*also, made]
        texts = {play.after: play.text for play in legal_plays(position, dice)}
        # The program writes some plays in another way.
        known = [
            replace(one, play=texts[written_play(position, one.play)[0]])
            for one in self._engine.analyse([(position, dice)], PLIES, LISTED)[0]
        ]
        wanted = {play.text for play in some}
        for text in sorted(wanted - {one.play for one in known}):
            known.append(self._engine.equity_of_play(position, dice, text, PLIES))
        return _decision(position, dice, known, wanted, made)


def default_judge(network: PositionNetwork) -> Judge:
    """Return the engine's judge where the engine is installed, else the network's."""
    path = find_engine()
    return NetworkJudge(network) if path is None else EngineJudge(Engine(path))


def _decision(
    position: Position,
    dice: Dice,
    known: Sequence[Candidate],
    wanted: set[str],
    made: Play | None,
) -> Decision:
    ranked = sorted(known, key=lambda one: -one.equity)
    kept = [one for place, one in enumerate(ranked) if place < LISTED or one.play in wanted]
    played = None if made is None else [one.play for one in kept].index(made.text)
    return Decision("asked", position, dice, tuple(kept), played)


def _after(play: Play, row: Sequence[float]) -> Chances:
    if not any(play.after.own):
        return won_chances(play.after)
    win, win_g, win_bg, lose_g, lose_bg = (round(float(one), 3) for one in row)
    mine = other_side((win, win_g, win_bg, lose_g, lose_bg))
    return (round(mine[0], 3), *mine[1:])
