"""Judges of plays: GNU Backgammon if it is installed, or else the trained network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from casewright_backgammon.decision import (
    AnalysedPlay,
    Chances,
    Decision,
    chances_after_win,
    chances_of,
    flipped_chances,
)
from casewright_backgammon.engine import GnuBackgammon, find_engine
from casewright_backgammon.latent import PositionNetwork
from casewright_backgammon.moves import Dice, Play, legal_plays
from casewright_backgammon.play_text import parse_play
from casewright_backgammon.position import Position

#: Number of best plays that an analysis lists, if there are that many legal plays.
LISTED_COUNT = 5
#: Plies of the engine's look-ahead.
PLIES = 2


class PlayJudge(ABC):
    """A judge of plays, which analyses decisions."""

    name: str  # the name that users see
    is_trusted: bool  # True if the judge's analyses may become cases

    def analyse(
        self, position: Position, dice: Dice, played: Play | None, more_plays: Sequence[Play]
    ) -> Decision:
        """Return a decision with its best plays, ``more_plays``, and the play that was made.

        The position is from the side of the player on roll. Raise ``ToolError`` if an engine fails.
        """
        required = {play.text for play in (*more_plays, played) if play}
        candidates = self._candidates(position, dice, required)
        ranked = sorted(candidates, key=lambda candidate: -candidate.equity)
        listed, others = ranked[:LISTED_COUNT], ranked[LISTED_COUNT:]
        listed += [candidate for candidate in others if candidate.play in required]
        plays = [candidate.play for candidate in listed]
        rank = None if played is None else plays.index(played.text)
        return Decision("asked", position, dice, tuple(listed), rank)

    @abstractmethod
    def _candidates(self, position: Position, dice: Dice, required: set[str]) -> list[AnalysedPlay]:
        """Return analyses of the best plays, and of the plays whose texts are in ``required``."""


@dataclass(frozen=True, slots=True)
class NetworkJudge(PlayJudge):
    """The judge that uses the trained network, without cube and look-ahead."""

    network: PositionNetwork
    name = "the network that ships, without look-ahead"
    is_trusted = False

    def _candidates(self, position: Position, dice: Dice, required: set[str]) -> list[AnalysedPlay]:
        plays = legal_plays(position, dice)
        equities = self.network.after_equities([play.after for play in plays])
        chances = self.network.chances([play.after.flipped for play in plays])
        return [
            AnalysedPlay(play.text, round(float(equity), 3), _chances_after(play, row.tolist()))
            for play, equity, row in zip(plays, equities, chances, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class EngineJudge(PlayJudge):
    """The judge that uses GNU Backgammon at two plies, for money games."""

    engine: GnuBackgammon
    name = "GNU Backgammon, 2 plies ahead"
    is_trusted = True

    def _candidates(self, position: Position, dice: Dice, required: set[str]) -> list[AnalysedPlay]:
        texts = {play.after: play.text for play in legal_plays(position, dice)}
        # The program's texts of plays may differ from ``Play.text``, which replaces them.
        listed = [
            replace(candidate, play=texts[parse_play(position, candidate.play)[0]])
            for candidate in self.engine.analyse([(position, dice)], PLIES, LISTED_COUNT)[0]
        ]
        for text in sorted(required - {candidate.play for candidate in listed}):
            listed.append(self.engine.analyse_play(position, dice, text, PLIES))
        return listed


def default_judge(network: PositionNetwork) -> PlayJudge:
    """Return the engine's judge if the engine is installed, or else the network's judge."""
    path = find_engine()
    return NetworkJudge(network) if path is None else EngineJudge(GnuBackgammon(path))


def _chances_after(play: Play, opponent_chances: Sequence[float]) -> Chances:
    """Return the chances of the player who makes a play, from the chances of the opponent."""
    if not any(play.after.own):
        return chances_after_win(play.after)
    return chances_of(round(chance, 3) for chance in flipped_chances(chances_of(opponent_chances)))
