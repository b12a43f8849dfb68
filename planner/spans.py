"""Splits questions into words, and recognises spans, which are adjacent whole words."""

from __future__ import annotations

from dataclasses import dataclass

import regex as re

#: A run of word characters and combining marks; ``\w`` does not match the marks.
_RUN = r"(?!\p{M})\w[\w\p{M}]*"
WORD_RUNS = re.compile(_RUN)
#: A word: runs joined by apostrophes, hyphens, dots, slashes, ampersands or plus signs.
_WORD = re.compile(rf"{_RUN}(?:['’\-./&+]{_RUN})*")
#: Characters that make a break between words; a literal must not contain a break.
_BREAKS = frozenset(".?!;:\n()")


@dataclass(frozen=True, slots=True)
class Word:
    """Word of a question, its range in characters, and whether it comes after a break."""

    text: str
    start: int
    end: int
    after_break: bool


def words_of(question: str) -> list[Word]:
    """Split a question into words."""
    words: list[Word] = []
    for match in _WORD.finditer(question):
        between = question[words[-1].end : match.start()] if words else ""
        after_break = not _BREAKS.isdisjoint(between)
        words.append(Word(match[0], match.start(), match.end(), after_break))
    return words


def normalized(text: str) -> str:
    """Return the text case-folded, with single spaces."""
    return " ".join(text.split()).casefold()


def is_span(text: str, question: str) -> bool:
    """Return True if the text is one or more whole, adjacent words of the question.

    Case and white space are ignored. The parts of a joined word are words too: ``x`` in ``x-ray``.
    """
    span, message = normalized(text), normalized(question)
    ranges = [run.span() for run in WORD_RUNS.finditer(message)]
    ends = {end for _, end in ranges}
    return any(start + len(span) in ends and message.startswith(span, start) for start, _ in ranges)
