"""A text as words and marks, with what their places say: where a sentence or a line begins."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from casewright.domains.legal.entity_words import SHORTENED

#: A word of more letters is no name.
LONGEST_WORD = 40

# Letters with full stops (U.S.), words with their hyphens and apostrophes, single marks.
_TOKEN = re.compile(r"(?:[^\W\d_]\.){2,8}|[^\W_]+(?:['’&/-][^\W_]+)*|\S")


@dataclass(frozen=True, slots=True)
class Token:
    """A word or mark.

    Attributes:
        text: As it stands.
        low: In small letters, without a possessive ``'s``.
        start: Its first character's place.
        end: The place after its last character, without a possessive ``'s``.
        capital: Whether it may be a word of a name.
        breaks: Whether a line ends before it.
    """

    text: str
    low: str
    start: int
    end: int
    capital: bool
    breaks: bool


class Tokens(list[Token]):
    """The words and marks of a text; made in time linear in the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        last = 0
        for found in _TOKEN.finditer(text):
            whole, start = found[0], found.start()
            word = whole[:-2] if whole.endswith(("'s", "’s", "'S", "’S")) else whole
            self.append(
                Token(
                    text=whole,
                    low=word.casefold(),
                    start=start,
                    end=start + len(word),
                    capital=whole[0].isupper() and len(whole) <= LONGEST_WORD,
                    breaks="\n" in text[last:start],
                )
            )
            last = found.end()
        self._capitals = Counter(token.low for token in self if token.capital)
        self._small = {token.low for token in self if not token.capital}

    def low(self, first: int, count: int) -> tuple[str, ...]:
        """Return the words from a place on, in small letters; fewer at the end of the text."""
        return tuple(token.low for token in self[first : first + count])

    def repeated(self, at: int) -> bool:
        """Say whether a word has its capital again elsewhere, and is never without it."""
        low = self[at].low
        return self._capitals[low] > 1 and low not in self._small

    def borrowed(self, at: int) -> bool:
        """Say whether a word has its capital from the sentence that it opens."""
        return self.opens(at) and self[at].low in self._small

    def opens(self, at: int) -> bool:
        """Say whether a sentence begins with this word."""
        first = self._label(at)
        if first == 0 or self[first].breaks:
            return True
        before = at - 1
        while at - 3 < before > 0 and self[before].text in "\"'”’)]“‘":
            before -= 1
        mark = self[before].text
        return mark in ("!", "?", "—") or (mark == "." and not self.shortened(before - 1))

    def _label(self, at: int) -> int:
        """Return where a paragraph's number right before this word begins: ``7``, ``(2)``."""
        if at > 2 and self[at - 1].text == ")" and self[at - 3].text == "(":
            return at - 3
        return at - 1 if at > 0 and self[at - 1].text[0].isdecimal() else at

    def shortened(self, at: int) -> bool:
        """Say whether a full stop after this word shortens it."""
        if at < 0:
            return False
        token = self[at]
        return token.low in SHORTENED or (len(token.text) == 1 and token.capital)
