"""Parsers of rolls, and of plays in the players' notation: ``16/13 2/1``, ``bar/20*/14 6/5(2)``."""

from __future__ import annotations

import re
from itertools import pairwise

from casewright.errors import InputError
from casewright_backgammon.moves import Dice, Play, Step, apply_step, legal_plays
from casewright_backgammon.position import BAR, HOME, POINTS, Position

_STEPS = re.compile(r"(bar|\d{1,2})((?:/(?:off|\d{1,2})\*?)+)(?:\(([1-4])\))?", re.IGNORECASE)
_ROLL = re.compile(r"\s*([1-6])\s*[-:, x]?\s*([1-6])\s*")


def dice_of(text: str) -> Dice:
    """Return the dice of a text such as ``3-1`` or ``31``; raise ``InputError`` for any other."""
    match = _ROLL.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r:.40} is not a roll. Give two numbers from 1 to 6, such as 3-1.")
    return int(match[1]), int(match[2])


def legal_play(position: Position, dice: Dice, text: str) -> Play:
    """Return the legal play that a text describes; raise ``InputError`` for any other text."""
    plays = legal_plays(position, dice)
    try:
        after, steps = parse_play(position, text)
    except InputError as error:
        raise _illegal_error(text, dice, plays, str(error)) from None
    legal = next((play for play in plays if play.after == after), None)
    if legal is not None:
        return legal
    raise _illegal_error(text, dice, plays, _broken_rule(position, dice, after, steps, plays))


def parse_play(position: Position, text: str) -> tuple[Position, list[Step]]:
    """Return the position after a play, and the play's steps; the roll does not matter.

    Raise ``InputError`` if the text cannot be parsed, or a step is impossible; see ``apply_step``.
    """
    steps: list[Step] = []
    if text.strip().lower() in ("cannot move", "no move", ""):
        return position, steps
    for word in text.split():
        match = _STEPS.fullmatch(word)
        if match is None:
            raise InputError(
                f"{word!r:.40} cannot be read; a step is written 13/8, bar/20 or 6/off"
            )
        start, ends, times = match.groups()
        points = [_point(start), *(_point(end.rstrip("*")) for end in ends.split("/")[1:])]
        for step_start, end in pairwise(points):
            if not end < step_start <= BAR + 1:
                raise InputError(f"{word!r} does not move a checker to a lower point or off")
        for _ in range(int(times or 1)):
            for step_start, end in pairwise(points):
                position, is_hit = apply_step(position, step_start, end)
                steps.append((step_start, end, is_hit))
    return position, steps


def _point(text: str) -> int:
    """Return the number of a point: 25 for the bar, 0 for off."""
    point_by_name = {"bar": BAR + 1, "off": 0}
    point = point_by_name[text.lower()] if text.lower() in point_by_name else int(text)
    if not 0 <= point <= BAR + 1:
        raise InputError(f"there is no point {point}; they are 1 to {POINTS}")
    return point


def _broken_rule(
    position: Position, dice: Dice, after: Position, steps: list[Step], plays: list[Play]
) -> str:
    """Return the rule that an illegal play breaks; the legal ``plays`` have equally many steps."""
    moved_pips = sum(start - end for start, end, _ in steps)
    rolled_pips = sum(dice) * (2 if dice[0] == dice[1] else 1)
    if not steps and any(play.steps for play in plays):
        return "something can be moved, so it must be"
    entered_count = sum(start == BAR + 1 for start, _, _ in steps)
    if position.own[BAR] > entered_count and any(start <= BAR for start, _, _ in steps):
        return "checkers on the bar must enter first"
    if any(end == 0 for _, end, _ in steps) and any(after.own[HOME:]):
        return "no checker may be borne off while one is outside the home board"
    if moved_pips > rolled_pips:
        return f"it moves {moved_pips} pips, and the roll has {rolled_pips}"
    if dice[0] != dice[1] and len(plays[0].steps) == 1 and moved_pips == min(dice):
        return "only one die can be played, and it must be the larger one if possible"
    if moved_pips < rolled_pips and len(plays[0].steps) > len(steps):
        return "more of the roll can be played, so it must be"
    return "the dice do not make these steps"


def _illegal_error(text: str, dice: Dice, plays: list[Play], reason: str) -> InputError:
    examples = ", ".join(sorted((play.text for play in plays), reverse=True)[:4])
    return InputError(
        f"The play {text!r:.60} is not legal with {dice[0]}-{dice[1]}: {reason}. "
        f"Legal plays are for example: {examples}."
    )
