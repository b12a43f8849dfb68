"""From a board's picture to a checked analysis: read, retrieve, reuse or ask, revise, retain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from casewright.planner.chat_call import Chat
from casewright.stores import Binary, CaseStore, Hit, Retained
from casewright_backgammon.advice import carried_over
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
from casewright_backgammon.judge import Judge
from casewright_backgammon.latent import PositionNetwork
from casewright_backgammon.moves import Dice, Play, legal_plays
from casewright_backgammon.play_text import play_of
from casewright_backgammon.position import Position
from casewright_backgammon.prompts import prompt, tries

#: Cases that are retrieved (MCBR-RAG, Table 4).
NEAREST = 3
#: Losses below this are none: GNU Backgammon calls an error doubtful from 0.03.
GOOD_ENOUGH = 0.02
#: Attempts of a chat model: the first, and one after a correction.
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Attempt:
    """A play that was advised, with the judge's verdict.

    Attributes:
        play: As players write it; empty where an answer names no legal one.
        lost: Equity that it gives up against the judge's best; ``None`` without a play.
        text: A chat model's answer; empty where a case's play was carried over.
        why: The flaw of the play or the answer; empty where there is none.
    """

    play: str
    lost: float | None
    text: str = ""
    why: str = ""

    @property
    def good(self) -> bool:
        """True if the play is legal and as good as the best."""
        return self.lost is not None and self.lost < GOOD_ENOUGH


@dataclass(frozen=True, slots=True)
class BoardAnswer:
    """The answer about a board.

    Attributes:
        position: From the side of the player on roll.
        dice: The roll.
        played: The play that the question is about.
        hits: The nearest cases.
        answered_by: ``reuse``, or the chat model's name.
        attempts: Each of them; the one that loses least is the advice.
        decision: The judge's analysis.
        judged_by: The judge's name.
        analysis: The judge's figures in words.
        retained: The outcome of retaining it as a case; ``None`` where it was not to be kept.
        not_retained: Why it was not kept although the request says so.
    """

    position: Position
    dice: Dice
    played: Play | None
    hits: Sequence[Hit]
    answered_by: str
    attempts: Sequence[Attempt]
    decision: Decision
    judged_by: str
    analysis: str
    retained: Retained | None = None
    not_retained: str = ""

    @property
    def advice(self) -> Attempt:
        """The attempt that loses least; of equal ones the first."""
        return min(
            self.attempts,
            key=lambda attempt: float("inf") if attempt.lost is None else attempt.lost,
        )


@dataclass(frozen=True, slots=True)
class BoardAnswerer:
    """Answers questions about decisions by the cases of a store.

    Attributes:
        store: Of ``decision_schema``.
        network: Computes the latents by which plays are carried over.
        judge: Values plays.
        chat: A chat model; without one the best plays of the nearest cases are carried over.
        name: The chat model's name.
    """

    store: CaseStore
    network: PositionNetwork
    judge: Judge
    chat: Chat | None = None
    name: str = "reuse"

    def answer(
        self,
        position: Position,
        dice: Dice,
        move: str | None = None,
        *,
        picture: Binary | None = None,
        retain: bool = False,
    ) -> BoardAnswer:
        """Answer one decision.

        Args:
            position: From the side of the player on roll.
            dice: The roll.
            move: The play that was made, as players write it.
            picture: Of the board; a retained case keeps it.
            retain: Keep the analysis as a case, if the judge's analyses are proof.

        Raises:
            InputError: The move is not legal; nothing is retained then.
            ToolError: The engine failed.
        """
        plays = legal_plays(position, dice)
        played = None if move is None else play_of(position, dice, move)
        hits = self._nearest(position, dice, played)
        if self.chat is None:
            carried = carried_over(plays, [decision_in(hit.case) for hit in hits], self.network)
            decision = self.judge.analysed(position, dice, played, carried)
            attempts = [_attempt(decision, play.text) for play in carried]
        else:
            decision, attempts = self._by_chat(self.chat, position, dice, played, hits)
        answer = BoardAnswer(
            position,
            dice,
            played,
            hits,
            self.name,
            attempts or [Attempt("", None, why="No case was found to carry a play over from.")],
            decision,
            self.judge.name,
            analysis_text(decision),
        )
        return self._kept(answer, picture) if retain else answer

    def _nearest(self, position: Position, dice: Dice, played: Play | None) -> list[Hit]:
        """Return the nearest cases of the same roll, then of any roll where they are too few."""
        query = {"board": position.id}
        weights = {POSITION: 1.0}
        if played is not None and played.steps:
            query, weights = {**query, "play": played.text}, {DECISION: 1.0}
        where = {"roll": roll_text(dice)}
        hits = self.store.search(query, NEAREST, weights=weights, where=where)
        if len(hits) < NEAREST:
            known = {hit.case.id for hit in hits}
            more = self.store.search(query, 2 * NEAREST, weights=weights)
            hits += [hit for hit in more if hit.case.id not in known][: NEAREST - len(hits)]
        return hits

    def _by_chat(
        self,
        chat: Chat,
        position: Position,
        dice: Dice,
        played: Play | None,
        hits: Sequence[Hit],
    ) -> tuple[Decision, list[Attempt]]:
        """Return the judge's analysis with the plays of a chat model, and the model's attempts."""
        query = prompt(position, dice, played, [case_text(hit.case) for hit in hits])
        said: list[tuple[str, str]] = []
        for text, why in islice(tries(chat, query, position, dice), ATTEMPTS):
            said.append((text, why))
            if not why:
                break
        named = [play_of(position, dice, best_play_of(text) or "") for text, why in said if not why]
        decision = self.judge.analysed(position, dice, played, named)
        plays = iter(named)
        return decision, [
            Attempt("", None, text, why)
            if why
            else replace(
                _attempt(decision, next(plays).text),
                text=text,
                why=" ".join(analysis_flaws(text, decision)),
            )
            for text, why in said
        ]

    def _kept(self, answer: BoardAnswer, picture: Binary | None) -> BoardAnswer:
        if not self.judge.proves:
            return replace(
                answer,
                not_retained="Only what GNU Backgammon analysed is kept as a case, and it is not "
                "installed (on Debian: the package gnubg).",
            )
        if len(answer.decision.candidates) < 2:
            return replace(answer, not_retained="There is one legal play: nothing to learn from.")
        kept = self.store.retain(decision_case(answer.decision, picture))
        return replace(answer, retained=kept)


def _attempt(decision: Decision, play: str) -> Attempt:
    rank = [candidate.play for candidate in decision.candidates].index(play)
    return Attempt(play, round(decision.lost(rank), 3))
