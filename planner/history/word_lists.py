"""Lists of words, written as running text."""

from __future__ import annotations


def words_in(text: str) -> list[str]:
    """Return the words of a list that is written as one text."""
    return text.split()
