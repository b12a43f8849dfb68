"""Reading a chat model's verdicts: ``{"0": true, "1": false}``, or what was meant by it."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Of a longer answer the end is read: there the verdicts stand.
LONGEST = 20_000
_YES = frozenset({"true", "yes", "1", "relevant"})
_NO = frozenset({"false", "no", "0", "irrelevant", "not relevant", "null", "none"})
#: Words that may stand before a list of the relevant ones.
_INTRODUCING = frozenset({"the", "relevant", "candidates", "numbers", "are", "answer", "verdicts"})
_STRING = r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^'\\]|\\.)*'"
_WORD = r"[^\s\"'{},;:=]+"
_BETWEEN = re.compile(r"(?:[\s,;]|//[^\n]*)*")
#: A key and a value that is no list and no object.
_PAIR = re.compile(
    rf"(?P<key>{_STRING}|{_WORD}(?:[ \t]+{_WORD})?)\s*[:=]\s*"
    rf"(?P<value>{_STRING}|[^\s,;{{}}\[\]\"']+)",
    re.S,
)
_NUMBER = re.compile(r"(?:candidate[\s_#-]?)?#?\[?([0-9]{1,9})\]?", re.I)
_LIST = re.compile(r"\[[^\[\]{}]*(?:\]|\Z)")


def read_verdicts(text: str, count: int) -> dict[int, bool]:
    """Return number to verdict for what can be read of an answer about ``count`` candidates.

    Code fences, words around the object, single quotes, trailing commas, ``"yes"`` or ``1`` for
    ``true``, and keys like ``[0]`` or ``candidate 0`` are understood. Of a truncated object what is
    complete is read. A list of numbers names the relevant ones, and so the irrelevant too. Of
    several objects the last counts: models think, and may quote, before they answer; what stands in
    a string of an object is none. Numbers of no candidate are left out.
    """
    unfenced = re.sub(r"\A\s*`+\w*\s*", "", text[-LONGEST:])
    verdicts: dict[int, bool] = {}
    # The braces may be missing.
    start = 0
    while start >= 0:
        found, end = _pairs(unfenced, start, count)
        verdicts = found or verdicts
        brace = unfenced.find("{", end)
        start = brace + 1 if brace >= 0 else -1
    if verdicts:
        return verdicts
    listed = _listed(unfenced)
    if listed is None:
        return {}
    return {number: number in listed for number in range(count)}


def _pairs(text: str, at: int, count: int) -> tuple[dict[int, bool], int]:
    """Return the verdicts of the pairs that stand one after the other from a place on, and where
    the last one ends.
    """
    verdicts: dict[int, bool] = {}
    while (pair := _PAIR.match(text, _after(text, at))) is not None:
        at = pair.end()
        number, verdict = _number(pair["key"]), _verdict(pair["value"])
        if number is not None and number < count and verdict is not None:
            verdicts[number] = verdict
    return verdicts, at


def _after(text: str, at: int) -> int:
    between = _BETWEEN.match(text, at)
    assert between is not None  # it may be empty
    return between.end()


def _number(key: str) -> int | None:
    found = _NUMBER.fullmatch(key.strip("\"'*` \t\n")[:40])
    return int(found[1]) if found else None


def _verdict(value: str) -> bool | None:
    plain = value.strip("\"'*`.! \t\n").lower()
    return True if plain in _YES else False if plain in _NO else None


def _listed(text: str) -> set[int] | None:
    """Return the numbers of the last list that stands alone, or is said to be of the relevant.

    A number in brackets inside a sentence is no list: it may be what the model refuses to do.
    """
    for found in reversed([*_LIST.finditer(text)]):
        before = text[: found.start()].rsplit("\n", 1)[-1]
        after = text[found.end() :].split("\n", 1)[0]
        words = re.findall(r"\w+", before.lower())
        introduced = _INTRODUCING.issuperset(words)
        if not introduced or re.search(r"\w", after):
            continue
        items = found[0].strip("[]").split(",")
        if not found[0].endswith("]"):
            # The last number may be the front of a longer one.
            items.pop()
        if (numbers := _numbers(items)) is not None:
            return numbers
    return None


def _numbers(items: Sequence[str]) -> set[int] | None:
    told = [item for item in items if item.strip()]
    numbers = {_number(item.strip()) for item in told}
    return None if None in numbers else {number for number in numbers if number is not None}
