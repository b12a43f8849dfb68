"""From a board's picture to a checked analysis: read, retrieve, reuse or ask, revise, retain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

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
from casewright.planner.chat_text import Chat
from casewright.stores import Binary, CaseStore, Hit, Retained

#: Cases that are looked at (MCBR-RAG, Table 4).
NEAREST = 3
#: A play that loses less is as good as the best: GNU Backgammon calls more than twice it doubtful.
GOOD_ENOUGH = 0.02
#: First attempt of a chat model, and one that is told what was wrong with it.
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Attempt:
    """A play that was advised, and what the judge says of it.

    Attributes:
        play: As players write it; empty where an answer names no legal one.
        lost: Equity that it gives up against the judge's best; ``None`` without a play.
        text: A chat model's answer; empty where a case's play was carried over.
        why: What is wrong with it; empty where it is good.
    """

    play: str
    lost: float | None
    text: str = ""
    why: str = ""

    @property
    def good(self) -> bool:
        """Whether it is legal, and as good as the best."""
        return self.lost is not None and self.lost < GOOD_ENOUGH


@dataclass(frozen=True, slots=True)
class BoardAnswer:
    """What became of a board.

    Attributes:
        position: From the side of the player on roll.
        dice: The roll.
        made: The play that was asked about.
        hits: The nearest cases.
        answered_by: ``reuse``, or the chat model's name.
        attempts: Each of them; the one that loses least is the advice.
        decision: The judge's analysis.
        judged_by: The judge's name.
        analysis: The judge's figures in words.
        retained: What became of it as a case; ``None`` where it was not to be kept.
        not_retained: Why it was not kept though it was asked for.
    """

    position: Position
    dice: Dice
    made: Play | None
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
        return min(self.attempts, key=lambda one: float("inf") if one.lost is None else one.lost)


class BoardAnswerer:
    """Answers decisions by the cases of a store.

    Args:
        store: Of ``decision_schema``.
        network: Makes the latents by which plays are carried over.
        judge: Says what plays are worth.
        chat: A chat model; without one the best plays of the nearest cases are carried over.
        name: The chat model's name.
    """

    def __init__(
        self,
        store: CaseStore,
        network: PositionNetwork,
        judge: Judge,
        chat: Chat | None = None,
        name: str = "reuse",
    ) -> None:
        self._store = store
        self._network = network
        self._judge = judge
        self._chat = chat
        self._name = name

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
            picture: The board's, which a retained case keeps.
            retain: Whether the analysis becomes a case, where the judge's word is proof.

        Raises:
            InputError: The move is not legal; nothing is retained then.
            ToolError: The engine failed.
        """
        plays = legal_plays(position, dice)
        made = None if move is None else play_of(position, dice, move)
        hits = self._nearest(position, dice, made)
        if self._chat is None:
            carried = carried_over(plays, [decision_in(hit.case) for hit in hits], self._network)
            decision = self._judge.analysed(position, dice, made, carried)
            attempts = [_attempt(decision, play.text) for play in carried]
        else:
            decision, attempts = self._asked(self._chat, position, dice, made, hits)
        found = BoardAnswer(
            position,
            dice,
            made,
            hits,
            self._name,
            attempts or [Attempt("", None, why="No case was found to carry a play over from.")],
            decision,
            self._judge.name,
            analysis_text(decision),
        )
        return self._kept(found, picture) if retain else found

    def _nearest(self, position: Position, dice: Dice, made: Play | None) -> list[Hit]:
        """Return the nearest cases of the same roll; of any, where there are too few."""
        query = {"board": position.id}
        weights = {POSITION: 1.0}
        if made is not None and made.steps:
            query, weights = {**query, "play": made.text}, {DECISION: 1.0}
        where = {"roll": roll_text(dice)}
        hits = self._store.search(query, NEAREST, weights=weights, where=where)
        if len(hits) < NEAREST:
            known = {hit.case.id for hit in hits}
            more = self._store.search(query, 2 * NEAREST, weights=weights)
            hits += [hit for hit in more if hit.case.id not in known][: NEAREST - len(hits)]
        return hits

    def _asked(
        self,
        chat: Chat,
        position: Position,
        dice: Dice,
        made: Play | None,
        hits: Sequence[Hit],
    ) -> tuple[Decision, list[Attempt]]:
        """Return the judge's analysis with the plays of a chat model, and its attempts."""
        query = prompt(position, dice, made, [case_text(hit.case) for hit in hits])
        said: list[tuple[str, str]] = []
        for text, why in islice(tries(chat, query, position, dice), ATTEMPTS):
            said.append((text, why))
            if not why:
                break
        named = [play_of(position, dice, best_play_of(text) or "") for text, why in said if not why]
        decision = self._judge.analysed(position, dice, made, named)
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

    def _kept(self, found: BoardAnswer, picture: Binary | None) -> BoardAnswer:
        if not self._judge.proves:
            return replace(
                found,
                not_retained="Only what GNU Backgammon analysed is kept as a case, and it is not "
                "installed (on Debian: the package gnubg).",
            )
        if len(found.decision.candidates) < 2:
            return replace(found, not_retained="There is one legal play: nothing to learn from.")
        kept = self._store.retain(decision_case(found.decision, picture))
        return replace(found, retained=kept)


def _attempt(decision: Decision, play: str) -> Attempt:
    place = [one.play for one in decision.candidates].index(play)
    return Attempt(play, round(decision.lost(place), 3))
