"""Tokens of a text: words and marks, with the begins of sentences and lines."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from casewright.domains.legal.entity_words import SHORTENED

#: Longest word of a name.
LONGEST_WORD = 40

# Letters with full stops (U.S.), words with their hyphens and apostrophes, single marks.
_TOKEN = re.compile(r"(?:[^\W\d_]\.){2,8}|[^\W_]+(?:['’&/-][^\W_]+)*|\S")


@dataclass(frozen=True, slots=True)
class TextToken:
    """A word or mark.

    Attributes:
        low: The text casefolded, without a possessive ``'s``.
        start: Index of its first character.
        end: Index after its last character, without a possessive ``'s``.
        capital: True if it may be a word of a name.
        breaks: True if a line ends before it.
    """

    text: str
    low: str
    start: int
    end: int
    capital: bool
    breaks: bool


class TextTokens(list[TextToken]):
    """The words and marks of a text, found in linear time."""

    def __init__(self, text: str) -> None:
        super().__init__()
        last = 0
        for match in _TOKEN.finditer(text):
            token, start = match[0], match.start()
            word = token[:-2] if token.endswith(("'s", "’s", "'S", "’S")) else token
            self.append(
                TextToken(
                    text=token,
                    low=word.casefold(),
                    start=start,
                    end=start + len(word),
                    capital=token[0].isupper() and len(token) <= LONGEST_WORD,
                    breaks="\n" in text[last:start],
                )
            )
            last = match.end()
        self._capitals = Counter(token.low for token in self if token.capital)
        self._lower = {token.low for token in self if not token.capital}

    def low(self, first: int, count: int) -> tuple[str, ...]:
        """Return casefolded words from an index on; fewer than ``count`` at the end of the text."""
        return tuple(token.low for token in self[first : first + count])

    def repeated(self, index: int) -> bool:
        """Return ``True`` if a word occurs several times, always with a capital."""
        low = self[index].low
        return self._capitals[low] > 1 and low not in self._lower

    def borrowed(self, index: int) -> bool:
        """Return ``True`` if a word has a capital only because it begins a sentence."""
        return self.opens(index) and self[index].low in self._lower

    def opens(self, index: int) -> bool:
        """Return ``True`` if a sentence begins with this word."""
        first = self._label(index)
        if first == 0 or self[first].breaks:
            return True
        before = index - 1
        while index - 3 < before > 0 and self[before].text in "\"'”’)]“‘":
            before -= 1
        mark = self[before].text
        return mark in ("!", "?", "—") or (mark == "." and not self.shortened(before - 1))

    def _label(self, index: int) -> int:
        """Return the index of the paragraph number right before this word: ``7``, ``(2)``."""
        if index > 2 and self[index - 1].text == ")" and self[index - 3].text == "(":
            return index - 3
        return index - 1 if index > 0 and self[index - 1].text[0].isdecimal() else index

    def shortened(self, index: int) -> bool:
        """Return ``True`` if a full stop after this word marks an abbreviation."""
        if index < 0:
            return False
        token = self[index]
        return token.low in SHORTENED or (len(token.text) == 1 and token.capital)
