"""Finds the numbers that a message mentions, in digits or in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import regex as re

_ZERO_TO_NINETEEN = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
#: Numbers with further words that may mean them: ``last`` in ``my last order`` means one result.
_FURTHER_WORDS = {
    0.0: "no none nothing",
    0.25: "quarter",
    0.5: "half",
    1.0: "a an single once alone me last latest newest another day",
    2.0: "both couple pair double twice twins",
    3.0: "triple",
    7.0: "week",
    12.0: "dozen year",
    14.0: "fortnight",
    100.0: "hundred",
    1000.0: "thousand",
    1e6: "million",
}
_VALUE_BY_WORD = {
    **{word: float(value) for value, word in enumerate(_ZERO_TO_NINETEEN.split())},
    **{word: 10.0 * value for value, word in enumerate(_TENS.split(), 2)},
    **{word: float(value) for value, word in enumerate(_ORDINALS.split(), 1)},
    **{word: value for value, words in _FURTHER_WORDS.items() for word in words.split()},
}
_FACTOR_BY_WORD = {"hundred": 100.0, "thousand": 1000.0, "k": 1000.0, "million": 1e6, "dozen": 12.0}
#: Factors of units, for tools that expect another unit: "two weeks" may mean 14 days.
_FACTOR_BY_UNIT = {"week": 7.0, "weeks": 7.0, "fortnight": 14.0, "fortnights": 14.0, "years": 12.0}
_FACTOR_BY_UNIT |= {"year": 12.0, "percent": 0.01, "hour": 60.0, "hours": 60.0, "month": 30.0}
_TOKEN = re.compile(r"\d+(?:[.,'’]\d+)*|[^\W\d_]+|%")

#: Smallest number that is too large for a plan, whose numbers have 64 bits.
TOO_LARGE = 2**63


@dataclass(frozen=True, slots=True)
class NumberMention:
    """A number, and the range of characters that mention it."""

    value: float
    start: int
    end: int


def number_mentions(text: str) -> list[NumberMention]:
    """Return the numbers that a text may mention, in order; one word may mean several numbers."""
    tokens = [(token[0].casefold(), *token.span()) for token in _TOKEN.finditer(text)]
    mentions = (mention for index in range(len(tokens)) for mention in _mentions_at(tokens, index))
    return list(dict.fromkeys(m for m in mentions if abs(m.value) < TOO_LARGE))


def _mentions_at(tokens: list[tuple[str, int, int]], position: int) -> Iterator[NumberMention]:
    """Yield the numbers that begin with a token: the token alone, with a unit, with more words."""
    word, start, end = tokens[position]
    for value in _values(word):
        yield NumberMention(value, start, end)
        total, total_end = value, end
        for index, (next_word, _, next_end) in enumerate(tokens[position + 1 : position + 5], 1):
            if next_word in ("and", "a", "an") and position + index + 1 < len(tokens):
                continue
            if (factor := _FACTOR_BY_WORD.get(next_word)) is not None:
                total, total_end = total * factor if total else factor, next_end
            elif (unit_factor := _FACTOR_BY_UNIT.get(next_word)) is not None or next_word == "%":
                yield NumberMention(round(total * (unit_factor or 0.01), 6), start, next_end)
                break
            elif _continues(total, next_word):
                total, total_end = total + _VALUE_BY_WORD[next_word], next_end
            else:
                break
        if total_end != end:
            yield NumberMention(total, start, total_end)


def _continues(total: float, word: str) -> bool:
    """Return True if a word continues a number, as in ``forty two`` and ``one and a half``."""
    if word == "half":
        return True
    value = _VALUE_BY_WORD.get(word, 0.0)
    # The total must end with zeros in the places of the value's digits.
    return 0 < value < 100 and total >= 20 and total % (10 if value < 10 else 100) == 0


def _values(word: str) -> Iterator[float]:
    """Yield the values that a word or digits may have: "1.234" may mean 1.234 or 1234."""
    if word in _VALUE_BY_WORD:
        yield _VALUE_BY_WORD[word]
    if not word[0].isdigit():
        return
    digits = word.replace("'", "").replace("’", "")
    separators = [character for character in digits if character in ".,"]
    if not separators:
        yield float(digits)
        return
    integer, _, decimals = digits.rpartition(separators[-1])
    if len(set(separators)) < len(separators) or len(decimals) == 3:  # Thousands.
        yield float(re.sub("[.,]", "", digits))
    if len(decimals) != 3 or separators[-1] == ".":
        yield float(re.sub("[.,]", "", integer) + "." + decimals)
