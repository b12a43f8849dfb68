"""What a chat model is asked: the board in words, the roll, and like decisions with their analyses.

After MCBR-RAG's experiment (section 5.2, Table 4): no context, or three cases; the wording is this
project's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from casewright_backgammon.analysis import best_play_of
from casewright_backgammon.cases import roll_text
from casewright_backgammon.moves import Dice, Play
from casewright_backgammon.play_text import play_of
from casewright_backgammon.position import Position, in_words
from casewright.errors import InputError
from casewright.planner.chat_text import Chat

ROLE = """You are a strong teacher of backgammon. You are told a position from the side of the
player on roll, whose points are numbered 1 to 24 from his own home board, and a roll.
Say in three to seven sentences which play is best, what it does, and why the alternatives are
worse. Plays are written like 8/5 6/5, bar/20, 13/8* (a hit), 6/off, 13/10(2) (twice).
End with one line that has nothing but the play:
Best play: 8/5 6/5"""


def prompt(position: Position, dice: Dice, made: Play | None, cases: Sequence[str] = ()) -> str:
    """Return a query.

    Args:
        position: From the side of the player on roll.
        dice: The roll.
        made: The play that was made, if one is asked about.
        cases: Analysed decisions as text, the nearest first.
    """
    asked = f"{in_words(position)}\nRoll: {roll_text(dice)}."
    if made is not None:
        asked += f"\nThe player made the play {made.text}."
    asked += "\nAnalyse this decision."
    if not cases:
        return asked
    told = "\n\n".join(f"Decision {number}:\n{case}" for number, case in enumerate(cases, 1))
    return f"Here are analysed decisions of like positions:\n\n{told}\n\nNow another one.\n{asked}"


def tries(chat: Chat, query: str, position: Position, dice: Dice) -> Iterator[tuple[str, str]]:
    """Yield each try's text and what is wrong with its play, without end; empty where it is legal.

    Args:
        chat: The model.
        query: What it is asked first; see ``prompt``.
        position: From the side of the player on roll.
        dice: The roll.
    """
    messages = [("system", ROLE), ("user", query)]
    while True:
        said = chat(messages)
        why = _why(said, position, dice)
        yield said, why
        messages += [("assistant", said), ("user", f"{why} Try once more.")]


def _why(said: str, position: Position, dice: Dice) -> str:
    play = best_play_of(said)
    if play is None:
        return 'There is no line "Best play: …" with a play.'
    try:
        play_of(position, dice, play)
    except InputError as error:
        return str(error)
    return ""
