"""Finds the names in a text (cases, Acts, courts, people, places) in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from casewright_legal import entity_words
from casewright_legal.acts import INSTRUMENTS
from casewright_legal.entity_tokens import TextTokens

#: Maximum number of words of a name; longer headings in capitals are split.
MAX_WORDS = 14
#: Maximum distance, in words and marks, between two successive capitalised words of a name.
MAX_DISTANCE = 5
#: Maximum number of words in brackets before a ``v``.
MAX_BRACKET_WORDS = 24
Span = tuple[int, int]  # the index of the first character, and the index after the last

_YEAR = re.compile(r"[12]\d{3}")
_NUMBER = re.compile(r"\d{1,3}")
_CASE_PREFIXES = (("re",), ("ex", "parte"), ("in", "re"), ("in", "the", "matter", "of"))


class Names:
    """Finds the names in a text. A method skips the words of names that were found before."""

    def __init__(self, text: str) -> None:
        self._tokens = TextTokens(text)
        self._used = bytearray(len(self._tokens))

    def cases(self) -> Iterator[Span]:
        """Yield names of cases: ``X v Y``, ``Re X``, ``Ex parte X``, ``In the matter of X``."""
        for start, token in enumerate(self._tokens):
            if token.folded in ("v", "vs"):
                yield from self._case_at_versus(start)
            elif token.is_capitalised and not self._used[start]:
                first = start + self._prefix_length(start)
                if start < first <= (last := self._name_end(first, entity_words.PARTY_JOINERS)):
                    yield self._use_as_name(start, self._with_case_number(last))

    def acts(self) -> Iterator[Span]:
        """Yield names of Acts and regulations, with year and jurisdiction."""
        for start in self._starts():
            last = self._instrument_end(start, self._name_end(start, entity_words.ACT_JOINERS))
            if last is not None and (first := self._act_start(start, last)) < last:
                yield self._use_as_name(first, self._act_end(last))

    def others(self) -> Iterator[Span]:
        """Yield the other names, which are sequences of capitalised words."""
        for start in self._starts():
            last = self._with_and_part(self._name_end(start, entity_words.CONNECTORS))
            first = self._name_start(start, last)
            if first <= last and self._is_name(first, last):
                yield self._use_as_name(first, last)
            self._mark_used(start, last)

    def _starts(self) -> Iterator[int]:
        """Yield the indices of the capitalised words that no method has used yet."""
        for index, token in enumerate(self._tokens):
            if token.is_capitalised and not self._used[index]:
                yield index

    def _case_at_versus(self, index: int) -> Iterator[Span]:
        """Yield the name of the case with the ``v`` at an index, if there are two parties."""
        left, right = index - 1, index + 1
        while left > 0 and self._tokens[left].text in "-–.":
            left -= 1
        while right < len(self._tokens) and self._tokens[right].text in "-–.":
            right += 1
        if left < 0 or self._tokens[index].begins_line:
            return
        first, last = self._party_start(left), self._name_end(right, entity_words.PARTY_JOINERS)
        if first <= left and last >= right:
            yield self._use_as_name(first, self._with_case_number(last))

    def _prefix_length(self, start: int) -> int:
        """Return the number of words of a case prefix, such as ``In re``, at ``start``, or 0."""
        folded = self._tokens.folded_words
        return next((len(p) for p in _CASE_PREFIXES if folded(start, len(p)) == p), 0)

    def _name_end(self, start: int, joiners: frozenset[str]) -> int:
        """Return the last index of a name that begins at ``start``; if none does, ``start - 1``."""
        last, index = start - 1, start
        limit = min(start + 2 * MAX_WORDS, len(self._tokens))
        while index < limit and last - start < MAX_WORDS:
            token = self._tokens[index]
            is_far = index - last > MAX_DISTANCE
            if self._used[index] or (index > start and token.begins_line) or is_far:
                break
            if token.is_capitalised and (index == start or not self._begins_new_name(index)):
                last = index
            elif last < start or not self._may_continue(index, last, joiners):
                break
            elif token.text == "(":
                index = self._closing_bracket(index)
            index += 1
        return last

    def _begins_new_name(self, index: int) -> bool:
        """Return ``True`` if a capitalised word begins a sentence, or is a title such as ``Mr``."""
        is_title = self._tokens[index].folded in entity_words.TITLES
        return is_title or self._tokens.begins_sentence(index)

    def _may_continue(self, index: int, last: int, joiners: frozenset[str]) -> bool:
        """Return ``True`` if a name may continue after this uncapitalised word or mark."""
        token, last_word = self._tokens[index], self._tokens[last]
        if token.text == ".":
            return index == last + 1 and self._tokens.is_abbreviation(last)
        if token.text == "(":
            return self._closing_bracket(index) > index
        if token.folded == "for" and joiners is entity_words.CONNECTORS:
            return last_word.folded in entity_words.WORDS_BEFORE_FOR
        if token.folded == "the":
            # "the" is in "Queen of the Desert" and "Smith v the King"; not in "Featuring the King".
            return index > last + 1 or not self._tokens.begins_sentence(last)
        return token.folded in joiners or _NUMBER.fullmatch(token.text) is not None

    def _closing_bracket(self, index: int) -> int:
        """Return the index of a ``)`` after one or two words inside a name; else ``index``."""
        for end in (index + 2, index + 3):
            part = self._tokens[index + 1 : end + 2]
            if len(part) == end + 1 - index and part[-2].text == ")" and part[-1].is_capitalised:
                return end if all(token.is_capitalised for token in part[:-2]) else index
        return index

    def _party_start(self, last: int) -> int:
        """Return the first index of a party that ends at ``last``; if none does, ``last + 1``."""
        start, index = last + 1, last
        while index >= 0 and last - index < 2 * MAX_WORDS and not self._used[index]:
            token = self._tokens[index]
            if token.is_capitalised:
                start = index
            elif token.text == ")" and (bracket := self._opening_bracket(index)) is not None:
                index = bracket
            elif not self._may_be_in_party(index):
                break
            if self._tokens.begins_sentence(index):
                break
            index -= 1
        while start <= last and self._cannot_begin_name(start):
            start += 1
        return start

    def _cannot_begin_name(self, index: int) -> bool:
        token = self._tokens[index]
        return not token.is_capitalised or token.folded in entity_words.SENTENCE_OPENERS

    def _may_be_in_party(self, index: int) -> bool:
        """Return ``True`` if a party's name may contain this uncapitalised word or mark."""
        token = self._tokens[index]
        if token.text == ".":
            return self._tokens.is_abbreviation(index - 1)
        is_number = _NUMBER.fullmatch(token.text) is not None
        return is_number or token.folded in entity_words.PARTY_JOINERS

    def _opening_bracket(self, index: int) -> int | None:
        earlier = range(index - 1, max(index - MAX_BRACKET_WORDS, 0), -1)
        return next((start for start in earlier if self._tokens[start].text == "("), None)

    def _with_case_number(self, last: int) -> int:
        """Return the last index of a name with its number, such as ``(No 2)``."""
        part = self._tokens.folded_words(last + 1, 4)
        has_number = len(part) == 4 and part[:2] == ("(", "no") and part[3] == ")"
        return last + 4 if has_number and part[2].isdecimal() else last

    def _with_and_part(self, last: int) -> int:
        """Return the last index of a name with a part after ``and``: Law and Order Commission."""
        following = self._tokens[last + 1 : last + 3]
        if [token.folded for token in following[:1]] != ["and"] or not following[-1].is_capitalised:
            return last
        longer_last = self._name_end(last + 2, entity_words.CONNECTORS)
        is_company = self._tokens[last].folded in entity_words.COMPANY_ENDS
        is_name_end = self._tokens[longer_last].folded in entity_words.LAST_WORDS_AFTER_AND
        return longer_last if is_name_end and not is_company else last

    def _instrument_end(self, first: int, last: int) -> int | None:
        """Return the index of the last word, such as ``Act``, of an instrument's name, if any."""
        for index in range(first + 1, last + 1):
            token = self._tokens[index]
            if token.is_capitalised and token.folded in INSTRUMENTS:
                # "Code of Practice Act" continues after "Code"; "Sale Act and" ends after "Act".
                following = self._tokens.folded_words(index + 1, 1)
                if index == last or following[0] in ("and", ",") or _YEAR.fullmatch(following[0]):
                    return index
        return None

    def _act_start(self, first: int, last: int) -> int:
        """Return the index of the first word of an Act's name between two indices."""
        for index in range(last - 1, first, -1):
            # "the" is before the name in "Smith and the Sale Act", not in "Law of the Sea Act".
            previous, word = self._tokens[index - 1], self._tokens[index]
            if word.folded == "the" and previous.folded not in ("of", "for"):
                return index + 1
        while first < last and self._cannot_begin_name(first):
            first += 1
        return first

    def _act_end(self, last: int) -> int:
        """Return the last index of an Act's name with its year and jurisdiction, if any."""
        if _YEAR.fullmatch("".join(self._tokens.folded_words(last + 1, 1))):
            last += 1
            part = self._tokens[last + 1 : last + 4]
            has_brackets = [token.text for token in part[::2]] == ["(", ")"]
            if has_brackets and part[1].is_capitalised:
                return last + 3
        return last

    def _name_start(self, first: int, last: int) -> int:
        """Return the first index of a name, without titles and words that only begin a sentence."""
        start = first
        while start <= last and (
            self._cannot_begin_name(start)
            or self._tokens[start].folded in entity_words.TITLES | entity_words.CALENDAR
            or (start < last and self._tokens.is_capitalised_as_first_word(start))
        ):
            start += 1
        return start

    def _is_name(self, first: int, last: int) -> bool:
        """Return ``True`` if not all words are generic. A single word has further conditions."""
        if last > first:
            words = self._tokens[first : last + 1]
            return any(word.folded not in entity_words.GENERIC for word in words)
        word = self._tokens[first].folded
        if len(word) < 2 or word in entity_words.GENERIC:
            return False
        return not self._tokens.begins_sentence(first) or self._tokens.is_always_capitalised(first)

    def _use_as_name(self, first: int, last: int) -> Span:
        """Mark the words of a name as used, and return the name's span."""
        self._mark_used(first, last)
        return self._tokens[first].start, self._tokens[last].end

    def _mark_used(self, first: int, last: int) -> None:
        self._used[first : last + 1] = b"\1" * (last + 1 - first)
