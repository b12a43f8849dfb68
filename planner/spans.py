"""Words of a question, and spans: whole words that stand next to each other."""

from __future__ import annotations

from dataclasses import dataclass

import regex as re

#: Combining marks belong to the letter before them, which the standard library's ``\w`` does not
#: know.
_RUN = r"(?!\p{M})\w[\w\p{M}]*"
RUNS = re.compile(_RUN)
#: A word, with what holds it together: apostrophes, hyphens, dots and slashes inside.
_WORD = re.compile(rf"{_RUN}(?:['’\-./&+]{_RUN})*")
#: No literal goes on past one of these characters.
_BREAK = frozenset(".?!;:\n()")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question: its first character, the one past its last, a break before it."""

    text: str
    start: int
    end: int
    after_break: bool


def words_of(question: str) -> list[Word]:
    """Split a question into words."""
    words: list[Word] = []
    end = 0
    for match in _WORD.finditer(question):
        broken = bool(words) and not _BREAK.isdisjoint(question[end : match.start()])
        words.append(Word(match[0], match.start(), match.end(), broken))
        end = match.end()
    return words


def normalized(text: str) -> str:
    """Return the text in one case, with single spaces."""
    return " ".join(text.split()).casefold()


def is_span(text: str, question: str) -> bool:
    """Return whether the text is one or more whole, adjacent words of the question.

    Case and the amount of space do not count; the ends must be word characters.
    """
    span, message = normalized(text), normalized(question)
    runs = [run.span() for run in RUNS.finditer(message)]
    ends = {end for _, end in runs}
    return any(start + len(span) in ends and message.startswith(span, start) for start, _ in runs)
