"""Answers about boards: retrieves cases, reuses a play or asks a model, revises and retains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf

from casewright.planner.chat_call import Chat
from casewright.stores import Binary, CaseStore, Hit, Retained
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
from casewright_backgammon.prompts import chat_attempts, prompt
from casewright_mcbr.layers import unit_rows

#: Number of retrieved cases (MCBR-RAG, Table 4).
NEAREST_COUNT = 3
#: A play is right if its equity loss is below this. GNU Backgammon calls a loss of 0.03 doubtful.
MAX_RIGHT_LOSS = 0.02
#: Maximum number of a chat model's attempts; before the second, the model is told the first flaw.
MAX_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class AdvisedPlay:
    """An attempt to answer: a play, and the equity loss that the judge computes for the play."""

    play: str  # the play in the players' notation; empty if the answer names no legal play
    equity_loss: float | None  # compared with the judge's best play; None without a play
    text: str = ""  # the chat model's answer; empty if a case's play was reused
    flaw: str = ""  # the flaws of the play and the text; empty if there are none

    @property
    def is_right(self) -> bool:
        """True if the play is legal, and about as good as the best play."""
        return self.equity_loss is not None and self.equity_loss < MAX_RIGHT_LOSS


@dataclass(frozen=True, slots=True)
class BoardAnswer:
    """The answer about a board."""

    position: Position  # the position from the side of the player on roll
    dice: Dice
    played: Play | None  # the play that was made; None if the question names none
    hits: Sequence[Hit]  # the retrieved cases, the nearest first
    answered_by: str  # "reuse", or the chat model's name
    attempts: Sequence[AdvisedPlay]  # at least one
    decision: Decision  # the judge's analysis
    judged_by: str  # the judge's name
    analysis: str  # the judge's analysis as text
    #: The outcome of retaining the analysis as a case; ``None`` if it was not retained.
    retained: Retained | None = None
    not_retained: str = ""  # why the analysis was not retained although this was requested

    @property
    def advice(self) -> AdvisedPlay:
        """The attempt with the least loss; the first of equal attempts."""
        return min(self.attempts, key=lambda a: inf if a.equity_loss is None else a.equity_loss)


@dataclass(frozen=True, slots=True)
class BoardAnswerer:
    """Uses the cases of a store to answer questions about decisions."""

    store: CaseStore  # a store with the schema of decision_schema
    network: PositionNetwork  # its latents compare plays
    judge: PlayJudge  # analyses decisions
    chat: Chat | None = None  # a chat model; if None, the nearest cases' best plays are reused
    name: str = "reuse"  # the chat model's name, or "reuse" without a chat model

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
            if not attempts:
                flaw = "No case was found whose play could be reused."
                attempts = [AdvisedPlay(play="", equity_loss=None, flaw=flaw)]
        else:
            decision, attempts = self._by_chat(self.chat, position, dice, played, hits)
        answer = BoardAnswer(
            position,
            dice,
            played,
            hits,
            self.name,
            attempts,
            decision,
            self.judge.name,
            analysis_text(decision),
        )
        return self._retain(answer, picture) if retain else answer

    def _nearest(self, position: Position, dice: Dice, played: Play | None) -> list[Hit]:
        """Return the nearest cases with the same roll, and other cases if these are too few."""
        query, facet = {"board": position.id}, POSITION
        if played is not None and played.steps:
            query["play"], facet = played.text, DECISION
        weights = {facet: 1.0}
        where = {"roll": roll_text(dice)}
        hits = self.store.search(query, NEAREST_COUNT, weights=weights, where=where)
        if len(hits) < NEAREST_COUNT:
            ids = {hit.case.id for hit in hits}
            others = self.store.search(query, 2 * NEAREST_COUNT, weights=weights)
            hits += [hit for hit in others if hit.case.id not in ids][: NEAREST_COUNT - len(hits)]
        return hits

    def _by_chat(
        self, chat: Chat, position: Position, dice: Dice, played: Play | None, hits: Sequence[Hit]
    ) -> tuple[Decision, list[AdvisedPlay]]:
        """Ask a chat model; return the judge's analysis with the model's play, and the attempts."""
        query = prompt(position, dice, played, [case_text(hit.case) for hit in hits])
        attempts: list[AdvisedPlay] = []
        for text, flaw in islice(chat_attempts(chat, query, position, dice), MAX_ATTEMPTS):
            if not flaw:
                play = legal_play(position, dice, best_play_of(text) or "")
                decision = self.judge.analyse(position, dice, played, [play])
                flaws = " ".join(analysis_flaws(text, decision))
                attempt = replace(_attempt(decision, play.text), text=text, flaw=flaws)
                return decision, [*attempts, attempt]
            attempts.append(AdvisedPlay(play="", equity_loss=None, text=text, flaw=flaw))
        return self.judge.analyse(position, dice, played, []), attempts

    def _retain(self, answer: BoardAnswer, picture: Binary | None) -> BoardAnswer:
        if not self.judge.is_trusted:
            reason = (
                "Only analyses of GNU Backgammon are kept as cases, and it is not installed (on "
                "Debian: the package gnubg)."
            )
            return replace(answer, not_retained=reason)
        if len(answer.decision.candidates) < 2:
            return replace(answer, not_retained="There is one legal play: nothing to learn from.")
        return replace(answer, retained=self.store.retain(decision_case(answer.decision, picture)))


def most_similar_plays(
    plays: Sequence[Play], cases: Sequence[Decision], network: PositionNetwork
) -> list[Play]:
    """Return for each case the legal play that is most similar to the case's best play.

    The similarity of two plays is the cosine of the latents of the positions after them, from the
    side of the player who is then on roll (measured by ``casewright bench backgammon``).
    """
    if not cases:
        return []
    legal_latents = unit_rows(network.latents([play.after.flipped for play in plays]))
    best_latents = unit_rows(network.latents([case.after(0).flipped for case in cases]))
    return [plays[int(index)] for index in (best_latents @ legal_latents.T).argmax(axis=1)]


def _attempt(decision: Decision, play: str) -> AdvisedPlay:
    rank = [candidate.play for candidate in decision.candidates].index(play)
    return AdvisedPlay(play, round(decision.equity_loss(rank), 3))
