"""Prompts for a decision: the position as text, the roll, and similar analysed decisions.

As in MCBR-RAG's experiment (section 5.2, Table 4), the context is empty or has three cases. The
wording of the prompts is not the paper's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from casewright.errors import InputError
from casewright.planner.chat_call import Chat
from casewright_backgammon.analysis import best_play_of
from casewright_backgammon.cases import roll_text
from casewright_backgammon.moves import Dice, Play
from casewright_backgammon.play_text import legal_play
from casewright_backgammon.position import Position, position_text
from casewright_mcbr.dialogue import dialogue

ROLE = """You are a strong teacher of backgammon. You are told a position from the side of the
player on roll, whose points are numbered 1 to 24 from his own home board, and a roll.
Say in three to seven sentences which play is best, what it does, and why the alternatives are
worse. Plays are written like 8/5 6/5, bar/20, 13/8* (a hit), 6/off, 13/10(2) (twice).
End with one line that has nothing but the play:
Best play: 8/5 6/5"""


def prompt(position: Position, dice: Dice, played: Play | None, cases: Sequence[str] = ()) -> str:
    """Return the user's prompt for a decision; ``cases`` are texts, the nearest case first."""
    question = f"{position_text(position)}\nRoll: {roll_text(dice)}."
    if played is not None:
        question += f"\nThe player made the play {played.text}."
    question += "\nAnalyse this decision."
    if not cases:
        return question
    examples = "\n\n".join(f"Decision {number}:\n{case}" for number, case in enumerate(cases, 1))
    intro = "Here are analysed decisions of similar positions:"
    return f"{intro}\n\n{examples}\n\nNow another one.\n{question}"


def chat_attempts(
    chat: Chat, query: str, position: Position, dice: Dice
) -> Iterator[tuple[str, str]]:
    """Yield, without end, a chat model's answer and the flaw of its play (empty if legal).

    First the model gets ``query``, which ``prompt`` returned; after each answer, it gets the flaw
    of that answer.
    """
    for answer in dialogue(
        chat, ROLE, query, lambda answer: f"{_flaw(answer, position, dice)} Try once more."
    ):
        yield answer, _flaw(answer, position, dice)


def _flaw(answer: str, position: Position, dice: Dice) -> str:
    """Return why an answer names no legal play; empty if it names one."""
    play = best_play_of(answer)
    if play is None:
        return 'There is no line "Best play: …" with a play.'
    try:
        legal_play(position, dice, play)
    except InputError as error:
        return str(error)
    return ""
