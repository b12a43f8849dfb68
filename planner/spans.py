"""Splits questions into words, and recognises spans, which are runs of adjacent whole words."""

from __future__ import annotations

from dataclasses import dataclass

import regex as re

#: A run of word characters and combining marks; ``\w`` does not match the marks.
_RUN = r"(?!\p{M})\w[\w\p{M}]*"
RUNS = re.compile(_RUN)
#: A word, with apostrophes, hyphens, dots and slashes inside.
_WORD = re.compile(rf"{_RUN}(?:['’\-./&+]{_RUN})*")
#: Characters that make a break between words; a literal must not contain a break.
_BREAK = frozenset(".?!;:\n()")


@dataclass(frozen=True, slots=True)
class Word:
    """Word of a question, its range in characters, and True if a break is before the word."""

    text: str
    start: int
    end: int
    after_break: bool


def words_of(question: str) -> list[Word]:
    """Split a question into words."""
    words: list[Word] = []
    end = 0
    for match in _WORD.finditer(question):
        after_break = bool(words) and not _BREAK.isdisjoint(question[end : match.start()])
        words.append(Word(match[0], match.start(), match.end(), after_break))
        end = match.end()
    return words


def normalized(text: str) -> str:
    """Return the text case-folded, with single spaces."""
    return " ".join(text.split()).casefold()


def is_span(text: str, question: str) -> bool:
    """Return True if the text is one or more whole, adjacent words of the question.

    Case and white space are ignored; the text must start and end with a word character.
    """
    span, message = normalized(text), normalized(question)
    runs = [run.span() for run in RUNS.finditer(message)]
    ends = {end for _, end in runs}
    return any(start + len(span) in ends and message.startswith(span, start) for start, _ in runs)
