"""Splits a text into words and marks, and finds where sentences and lines begin."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from casewright_legal.entity_words import ABBREVIATIONS

#: Maximum number of characters in a word of a name.
MAX_WORD_LENGTH = 40

# Letters with full stops (U.S.); words with hyphens and apostrophes; other marks, one by one.
_TOKEN = re.compile(r"(?:[^\W\d_]\.){2,8}|[^\W_]+(?:['’&/-][^\W_]+)*|\S")


class TextToken(NamedTuple):
    """A word or mark."""

    text: str
    folded: str  # the text casefolded, without a possessive ``'s``
    start: int  # the index of the first character in the text
    end: int  # the index after the last character, without a possessive ``'s``
    is_capitalised: bool  # True if it begins with a capital, and is short enough for a name
    begins_line: bool  # True if there is a line break before it


class TextTokens(list[TextToken]):
    """The words and marks of a text, found in linear time."""

    def __init__(self, text: str) -> None:
        super().__init__()
        previous_end = 0
        for match in _TOKEN.finditer(text):
            full, start = match[0], match.start()
            word = full[:-2] if full.endswith(("'s", "’s", "'S", "’S")) else full
            is_capitalised = full[0].isupper() and len(full) <= MAX_WORD_LENGTH
            end, begins_line = start + len(word), "\n" in text[previous_end:start]
            self.append(TextToken(full, word.casefold(), start, end, is_capitalised, begins_line))
            previous_end = match.end()
        self._capitalised_counts = Counter(token.folded for token in self if token.is_capitalised)
        self._uncapitalised = {token.folded for token in self if not token.is_capitalised}

    def folded_words(self, first: int, count: int) -> tuple[str, ...]:
        """Return ``count`` casefolded words from an index on, or fewer at the end of the text."""
        return tuple(token.folded for token in self[first : first + count])

    def is_always_capitalised(self, index: int) -> bool:
        """Return ``True`` if a word occurs several times, always with a capital."""
        folded = self[index].folded
        return self._capitalised_counts[folded] > 1 and folded not in self._uncapitalised

    def is_capitalised_as_first_word(self, index: int) -> bool:
        """Return ``True`` if a word has a capital only because it begins a sentence."""
        return self.begins_sentence(index) and self[index].folded in self._uncapitalised

    def begins_sentence(self, index: int) -> bool:
        """Return ``True`` if a sentence begins with this word."""
        first = self._label_start(index)
        if first == 0 or self[first].begins_line:
            return True
        previous = index - 1
        while previous > max(index - 3, 0) and self[previous].text in "\"'”’)]“‘":
            previous -= 1
        mark = self[previous].text
        return mark in ("!", "?", "—") or (mark == "." and not self.is_abbreviation(previous - 1))

    def _label_start(self, index: int) -> int:
        """Return the index of a number, ``7`` or ``(2)``, before a word; else the word's index."""
        if index > 2 and self[index - 1].text == ")" and self[index - 3].text == "(":
            return index - 3
        return index - 1 if index > 0 and self[index - 1].text[0].isdecimal() else index

    def is_abbreviation(self, index: int) -> bool:
        """Return ``True`` if a full stop after this word marks an abbreviation."""
        if index < 0:
            return False
        token = self[index]
        return token.folded in ABBREVIATIONS or (len(token.text) == 1 and token.is_capitalised)
