"""Recognition of names in a text (cases, Acts, courts, people, places) in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from casewright.domains.legal.acts import INSTRUMENTS
from casewright.domains.legal.entity_tokens import TextTokens
from casewright.domains.legal.entity_words import (
    ACT_JOINERS,
    AND_ENDS,
    CALENDAR,
    COMPANY_ENDS,
    CONNECTORS,
    FOR_HEADS,
    GENERIC,
    OPENERS,
    PARTY_JOINERS,
    TITLES,
)

#: Maximum number of words of a name; a heading in capitals is split.
MAX_WORDS = 14
#: Maximum number of words in brackets before a ``v``.
MAX_BRACKET_WORDS = 24
Span = tuple[int, int]

_YEAR = re.compile(r"[12]\d{3}")
_NUMBER = re.compile(r"\d{1,3}")
_MATTERS = (("re",), ("ex", "parte"), ("in", "re"), ("in", "the", "matter", "of"))


class Names:
    """A finder of the names in a text, kind by kind; kinds do not share words."""

    def __init__(self, text: str) -> None:
        self._tokens = TextTokens(text)
        self._used = bytearray(len(self._tokens))

    def cases(self) -> Iterator[Span]:
        """Yield names of cases: ``X v Y``, ``Re X``, ``Ex parte X``, ``In the matter of X``."""
        for here, token in enumerate(self._tokens):
            if token.low in ("v", "vs"):
                yield from self._versus(here)
            elif token.capital and not self._used[here] and (words := self._matter(here)):
                last = self._right(here + words, PARTY_JOINERS)
                if last >= here + words:
                    yield self._take(here, self._numbered(last))

    def acts(self) -> Iterator[Span]:
        """Yield names of Acts and regulations, with year and jurisdiction."""
        for here in self._starts():
            last = self._instrument(here, self._right(here, ACT_JOINERS))
            if last is not None and (first := self._act_start(here, last)) < last:
                yield self._take(first, self._act_end(last))

    def others(self) -> Iterator[Span]:
        """Yield the other names: runs of words with capitals."""
        for here in self._starts():
            end = self._joined(self._right(here, CONNECTORS))
            first = self._name_start(here, end)
            if first <= end and self._is_name(first, end):
                yield self._take(first, end)
            self._use(here, end)

    def _starts(self) -> Iterator[int]:
        """Yield the capitalised words that no name uses."""
        for here, token in enumerate(self._tokens):
            if token.capital and not self._used[here]:
                yield here

    def _versus(self, here: int) -> Iterator[Span]:
        before, after = here - 1, here + 1
        while before > 0 and self._tokens[before].text in "-–.":
            before -= 1
        while after < len(self._tokens) and self._tokens[after].text in "-–.":
            after += 1
        if before < 0 or self._tokens[here].breaks:
            return
        first, last = self._left(before), self._right(after, PARTY_JOINERS)
        if first <= before and last >= after:
            yield self._take(first, self._numbered(last))

    def _matter(self, here: int) -> int:
        """Return the number of words that announce a case's name, such as ``In re``; 0 if none."""
        for opening in _MATTERS:
            if self._tokens.low(here, len(opening)) == opening:
                return len(opening)
        return 0

    def _right(self, here: int, inside: frozenset[str]) -> int:
        """Return the last index of the name that begins at ``here``; ``here - 1`` for none."""
        last, index = here - 1, here
        end = min(here + 2 * MAX_WORDS, len(self._tokens))
        while index < end and last - here < MAX_WORDS:
            token = self._tokens[index]
            if self._used[index] or (index > here and token.breaks) or index - last > 5:
                break
            if token.capital and (index == here or not self._separates(index)):
                last = index
            elif last < here or not self._goes_on(index, last, inside):
                break
            elif token.text == "(":
                index = self._bracket_end(index)
            index += 1
        return last

    def _separates(self, index: int) -> bool:
        """Return ``True`` if a capitalised word begins a sentence, or is a title before a name."""
        return self._tokens[index].low in TITLES or self._tokens.opens(index)

    def _goes_on(self, index: int, last: int, inside: frozenset[str]) -> bool:
        """Return ``True`` if a name may continue after this word or mark without a capital."""
        token, before = self._tokens[index], self._tokens[last]
        if token.text == ".":
            return index == last + 1 and self._tokens.shortened(last)
        if token.text == "(":
            return self._bracket_end(index) > index
        if token.low == "for" and inside is CONNECTORS:
            return before.low in FOR_HEADS
        if token.low == "the":
            # "Queen of the Desert", "Smith v the King", but "Featuring the King".
            return index > last + 1 or not self._tokens.opens(last)
        return token.low in inside or _NUMBER.fullmatch(token.text) is not None

    def _bracket_end(self, index: int) -> int:
        """Return the end of a bracket with one or two names, if the name continues after it."""
        for end in (index + 2, index + 3):
            part = self._tokens[index + 1 : end + 2]
            if len(part) == end + 1 - index and part[-2].text == ")" and part[-1].capital:
                return end if all(token.capital for token in part[:-2]) else index
        return index

    def _left(self, here: int) -> int:
        """Return the first index of the party that ends at ``here``; ``here + 1`` for none."""
        first, index = here + 1, here
        while index >= 0 and here - index < 2 * MAX_WORDS and not self._used[index]:
            token = self._tokens[index]
            if token.capital:
                first = index
            elif token.text == ")" and (start := self._bracket_start(index)) is not None:
                index = start
            elif not self._goes_back(index):
                break
            if self._tokens.opens(index):
                break
            index -= 1
        while first <= here and (
            self._tokens[first].low in OPENERS or not self._tokens[first].capital
        ):
            first += 1
        return first

    def _goes_back(self, index: int) -> bool:
        """Return ``True`` if a party's name may begin before this word or mark."""
        token = self._tokens[index]
        if token.text == ".":
            return self._tokens.shortened(index - 1)
        return token.low in PARTY_JOINERS or _NUMBER.fullmatch(token.text) is not None

    def _bracket_start(self, index: int) -> int | None:
        for start in range(index - 1, max(index - MAX_BRACKET_WORDS, 0), -1):
            if self._tokens[start].text == "(":
                return start
        return None

    def _numbered(self, last: int) -> int:
        """Return the end of a name including its number, such as ``(No 2)``."""
        part = self._tokens.low(last + 1, 4)
        numbered = len(part) == 4 and part[:2] == ("(", "no") and part[3] == ")"
        return last + 4 if numbered and part[2].isdecimal() else last

    def _joined(self, last: int) -> int:
        """Return the end of a name including a part after ``and``: Securities and Investments …."""
        following = self._tokens[last + 1 : last + 3]
        if [token.low for token in following[:1]] != ["and"] or not following[-1].capital:
            return last
        end = self._right(last + 2, CONNECTORS)
        company = self._tokens[last].low in COMPANY_ENDS
        return end if self._tokens[end].low in AND_ENDS and not company else last

    def _instrument(self, first: int, last: int) -> int | None:
        """Return the last index of an instrument's name without its year."""
        for index in range(first + 1, last + 1):
            token = self._tokens[index]
            if token.capital and token.low in INSTRUMENTS:
                # "Code of Practice Act" goes on; "Sale Act 1995" and "Sale Act and the" do not.
                following = self._tokens.low(index + 1, 1)
                if index == last or following[0] in ("and", ",") or _YEAR.fullmatch(following[0]):
                    return index
        return None

    def _act_start(self, first: int, last: int) -> int:
        for index in range(last - 1, first, -1):
            # "Smith and the Sale Act", but "Protection of the Sea Act".
            before, word = self._tokens[index - 1], self._tokens[index]
            if word.low == "the" and before.low not in ("of", "for"):
                return index + 1
        while first < last and (
            not self._tokens[first].capital or self._tokens[first].low in OPENERS
        ):
            first += 1
        return first

    def _act_end(self, last: int) -> int:
        if _YEAR.fullmatch("".join(self._tokens.low(last + 1, 1))):
            last += 1
            part = self._tokens[last + 1 : last + 4]
            if len(part) == 3 and (part[0].text, part[2].text) == ("(", ")") and part[1].capital:
                return last + 3
        return last

    def _name_start(self, first: int, last: int) -> int:
        start = first
        while start <= last and (
            not self._tokens[start].capital
            or self._tokens[start].low in OPENERS | TITLES | CALENDAR
            or (start < last and self._tokens.borrowed(start))
        ):
            start += 1
        return start

    def _is_name(self, first: int, last: int) -> bool:
        if last > first:
            return any(word not in GENERIC for word in self._tokens.low(first, last + 1 - first))
        low = self._tokens[first].low
        if len(low) < 2 or low in GENERIC:
            return False
        return not self._tokens.opens(first) or self._tokens.repeated(first)

    def _take(self, first: int, last: int) -> Span:
        self._use(first, last)
        return self._tokens[first].start, self._tokens[last].end

    def _use(self, first: int, last: int) -> None:
        for index in range(first, last + 1):
            self._used[index] = True
