"""Answers about boards by case-based reasoning: retrieve, reuse or ask, revise, retain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf

from casewright.planner.chat_call import Chat
from casewright.stores import Binary, CaseStore, Hit, Retained
from casewright_backgammon.advice import most_similar_plays
from casewright_backgammon.analysis import analysis_text, best_play_of
from casewright_backgammon.analysis_check import analysis_flaws
from casewright_backgammon.cases import (
    DECISION,
    POSITION,
    case_text,
    decision_case,
    decision_in,
    roll_text,
)
from casewright_backgammon.decision import Decision
from casewright_backgammon.judge import PlayJudge
from casewright_backgammon.latent import PositionNetwork
from casewright_backgammon.moves import Dice, Play, legal_plays
from casewright_backgammon.play_text import legal_play
from casewright_backgammon.position import Position
from casewright_backgammon.prompts import prompt, tries

#: Number of retrieved cases (MCBR-RAG, Table 4).
NEAREST = 3
#: Smaller equity losses do not count: for GNU Backgammon, a play is doubtful from 0.03.
GOOD_ENOUGH = 0.02
#: Attempts of a chat model: the first, and another after a correction.
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class AdvisedPlay:
    """An attempt to answer: a play, with its equity loss by the judge."""

    play: str  # the play in the players' notation; empty if the answer names no legal play
    equity_loss: float | None  # compared with the judge's best play; None without a play
    text: str = ""  # the chat model's answer; empty if the play of a case was reused
    why: str = ""  # what is wrong with the play and the answer; empty if nothing is

    @property
    def good(self) -> bool:
        """True if the play is legal and about as good as the best."""
        return self.equity_loss is not None and self.equity_loss < GOOD_ENOUGH


@dataclass(frozen=True, slots=True)
class BoardAnswer:
    """The answer about a board."""

    position: Position  # the position from the side of the player on roll
    dice: Dice
    played: Play | None  # the play that the question is about
    hits: Sequence[Hit]  # the retrieved cases, the nearest first
    answered_by: str  # "reuse", or the chat model's name
    attempts: Sequence[AdvisedPlay]  # all attempts; the attempt with the least loss is the advice
    decision: Decision  # the judge's analysis
    judged_by: str  # the judge's name
    analysis: str  # the judge's analysis as text
    #: The outcome of retaining the analysis as a case; ``None`` if it was not retained.
    retained: Retained | None = None
    not_retained: str = ""  # why the analysis was not retained although this was requested

    @property
    def advice(self) -> AdvisedPlay:
        """The attempt with the least loss; the first of equal attempts."""
        losses = [inf if a.equity_loss is None else a.equity_loss for a in self.attempts]
        return self.attempts[losses.index(min(losses))]


@dataclass(frozen=True, slots=True)
class BoardAnswerer:
    """Answers questions about decisions with the cases of a store."""

    store: CaseStore  # a store with the schema of decision_schema
    network: PositionNetwork  # the network whose latents compare plays
    judge: PlayJudge  # the judge that computes the equities of plays
    #: A chat model; without a model, the best plays of the nearest cases are reused.
    chat: Chat | None = None
    name: str = "reuse"  # the chat model's name

    def answer(
        self,
        position: Position,
        dice: Dice,
        move: str | None = None,
        *,
        picture: Binary | None = None,
        retain: bool = False,
    ) -> BoardAnswer:
        """Answer a question about one decision.

        Args:
            position: The position from the side of the player on roll.
            move: The play that was made, in the players' notation.
            picture: The picture of the board, which a retained case keeps.
            retain: Retain the analysis as a case, if the judge's analyses may become cases.

        Raises:
            InputError: The move is not legal; then nothing is retained.
            ToolError: The engine failed.
        """
        plays = legal_plays(position, dice)
        played = None if move is None else legal_play(position, dice, move)
        hits = self._nearest(position, dice, played)
        if self.chat is None:
            cases = [decision_in(hit.case) for hit in hits]
            reused = most_similar_plays(plays, cases, self.network)
            decision = self.judge.analyse(position, dice, played, reused)
            attempts = [_attempt(decision, play.text) for play in reused]
        else:
            decision, attempts = self._by_chat(self.chat, position, dice, played, hits)
        answer = BoardAnswer(
            position,
            dice,
            played,
            hits,
            self.name,
            attempts
            or [AdvisedPlay("", None, why="No case was found whose play could be reused.")],
            decision,
            self.judge.name,
            analysis_text(decision),
        )
        return self._retain(answer, picture) if retain else answer

    def _nearest(self, position: Position, dice: Dice, played: Play | None) -> list[Hit]:
        """Return the nearest cases with the same roll, then others if these are too few."""
        query = {"board": position.id}
        weights = {POSITION: 1.0}
        if played is not None and played.steps:
            query, weights = {**query, "play": played.text}, {DECISION: 1.0}
        where = {"roll": roll_text(dice)}
        hits = self.store.search(query, NEAREST, weights=weights, where=where)
        if len(hits) < NEAREST:
            ids = {hit.case.id for hit in hits}
            others = self.store.search(query, 2 * NEAREST, weights=weights)
            hits += [hit for hit in others if hit.case.id not in ids][: NEAREST - len(hits)]
        return hits

    def _by_chat(
        self, chat: Chat, position: Position, dice: Dice, played: Play | None, hits: Sequence[Hit]
    ) -> tuple[Decision, list[AdvisedPlay]]:
        """Ask a chat model; return the judge's analysis with its play, and the model's attempts."""
        query = prompt(position, dice, played, [case_text(hit.case) for hit in hits])
        attempts: list[AdvisedPlay] = []
        for text, flaw in islice(tries(chat, query, position, dice), ATTEMPTS):
            if not flaw:
                play = legal_play(position, dice, best_play_of(text) or "")
                decision = self.judge.analyse(position, dice, played, [play])
                flaws = " ".join(analysis_flaws(text, decision))
                attempt = replace(_attempt(decision, play.text), text=text, why=flaws)
                return decision, [*attempts, attempt]
            attempts.append(AdvisedPlay("", None, text, flaw))
        return self.judge.analyse(position, dice, played, []), attempts

    def _retain(self, answer: BoardAnswer, picture: Binary | None) -> BoardAnswer:
        if not self.judge.proves:
            return replace(
                answer,
                not_retained="Only analyses of GNU Backgammon are kept as cases, and it is not "
                "installed (on Debian: the package gnubg).",
            )
        if len(answer.decision.candidates) < 2:
            return replace(answer, not_retained="There is one legal play: nothing to learn from.")
        retained = self.store.retain(decision_case(answer.decision, picture))
        return replace(answer, retained=retained)


def _attempt(decision: Decision, play: str) -> AdvisedPlay:
    rank = [candidate.play for candidate in decision.candidates].index(play)
    return AdvisedPlay(play, round(decision.equity_loss(rank), 3))
