"""Spans: whole words that stand next to each other in the question."""

from __future__ import annotations

import re
import unicodedata

#: Combining marks belong to the letter before them, which ``\w`` does not know. Beyond the first
#: two planes there are only variation selectors.
_MARKS = "".join(
    char
    for char in map(chr, (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)))
    if unicodedata.category(char).startswith("M")
)
_RUN = rf"\w[\w{_MARKS}]*"
_RUNS = re.compile(_RUN)
#: A word, with what holds it together: apostrophes, hyphens, dots and slashes inside.
WORD = re.compile(rf"{_RUN}(?:['’\-./&+]{_RUN})*")
_SPACES = re.compile(r"\s+")


def normalized(text: str) -> str:
    """Return the text in one case, with single spaces."""
    return _SPACES.sub(" ", text).strip().casefold()


def is_span(text: str, question: str) -> bool:
    """Say whether the text is one or more whole, adjacent words of the question.

    Case and the amount of space do not count; the ends must be word characters.
    """
    span, whole = normalized(text), normalized(question)
    runs = [run.span() for run in _RUNS.finditer(whole)]
    ends = {end for _, end in runs}
    return any(start + len(span) in ends and whole.startswith(span, start) for start, _ in runs)
