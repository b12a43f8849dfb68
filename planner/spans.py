"""Spans: whole words that stand next to each other in the question."""

from __future__ import annotations

import regex as re

#: Combining marks belong to the letter before them, which the standard library's ``\w`` does not
#: know.
_RUN = r"(?!\p{M})\w[\w\p{M}]*"
RUNS = re.compile(_RUN)
#: A word, with what holds it together: apostrophes, hyphens, dots and slashes inside.
WORD = re.compile(rf"{_RUN}(?:['’\-./&+]{_RUN})*")


def normalized(text: str) -> str:
    """Return the text in one case, with single spaces."""
    return " ".join(text.split()).casefold()


def is_span(text: str, question: str) -> bool:
    """Return whether the text is one or more whole, adjacent words of the question.

    Case and the amount of space do not count; the ends must be word characters.
    """
    span, whole = normalized(text), normalized(question)
    runs = [run.span() for run in RUNS.finditer(whole)]
    ends = {end for _, end in runs}
    return any(start + len(span) in ends and whole.startswith(span, start) for start, _ in runs)
