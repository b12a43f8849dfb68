"""Spans: whole words that stand next to each other in the question."""

from __future__ import annotations

import re

#: A word, with what holds it together: apostrophes, hyphens, dots and slashes inside.
WORD = re.compile(r"\w+(?:['’\-./&+]\w+)*")
_SPACES = re.compile(r"\s+")


def normalized(text: str) -> str:
    """Return the text in one case, with single spaces."""
    return _SPACES.sub(" ", text).strip().casefold()


def is_span(text: str, question: str) -> bool:
    """Say whether the text is one or more whole, adjacent words of the question.

    Case and the amount of space do not count; the ends must be word characters.
    """
    span, whole = normalized(text), normalized(question)
    if not span or not _is_word(span[0]) or not _is_word(span[-1]):
        return False
    at = whole.find(span)
    while at >= 0:
        end = at + len(span)
        starts = at == 0 or not _is_word(whole[at - 1])
        ends = end == len(whole) or not _is_word(whole[end])
        if starts and ends:
            return True
        at = whole.find(span, end)
    return False


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"
