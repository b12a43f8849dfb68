"""Reading a chat model's verdicts: ``{"0": true, "1": false}``, or what was meant by it."""

from __future__ import annotations

import re

#: Of a longer answer the end is read, in characters: there the verdicts stand.
LONGEST = 20_000
#: Words that introduce a list are few: one further to the right is in a sentence. In characters.
HEAD = 80
#: More than any number that is read.
MANY = 10**9
_YES = frozenset({"true", "yes", "1", "relevant"})
_NO = frozenset({"false", "no", "0", "irrelevant", "not relevant", "null", "none"})
#: Words that may stand before a list of the relevant ones.
_INTRODUCING = frozenset({"the", "relevant", "candidates", "numbers", "are", "answer", "verdicts"})
#: What an object about one candidate calls its number, and the verdict on it.
_IDS = frozenset({"id", "number", "index", "candidate", "candidate_id"})
_RELEVANT = frozenset({"relevant", "is_relevant", "verdict", "judgement", "judgment", "answer"})
_STRING = r'"(?:[^"\\]|\\.)*+"' + r"|'(?:[^'\\]|\\.)*+'"
_WORD = r"[^\s\"'{},;:=]+"
_KEY = rf"(?P<key>{_STRING}|{_WORD}(?:[ \t]+{_WORD})?)\s*[:=]\s*"
_BETWEEN = re.compile(r"(?:[\s,;]|//[^\n]*|[-*+•][ \t]+)*+")
#: A key and a value that is no list and no object.
_PAIR = re.compile(rf"{_KEY}(?P<value>{_STRING}|[^\s,;{{}}\[\]\"']+)", re.S)
_OBJECT = re.compile(rf"{_KEY}\{{", re.S)
_LIST_PAIR = re.compile(rf"{_KEY}\[(?:{_STRING}|[^\[\]{{}}\"'])*+\]", re.S)
_CLOSED = re.compile(r"[\s,;]*\}")
_NEXT_RECORD = re.compile(r"[\s,;}]*\{")
_NUMBER = re.compile(r"(?:candidate[\s_#-]?)?#?\[?([0-9]{1,9})\]?", re.I)
_LIST = re.compile(r"\[[^\[\]{}]*(?:\]|\Z)")
_NO_WORDS = re.compile(r"[^\w\n]*$", re.M)
#: ``- 0: true``, ``1. false``, ``candidate 2: yes, it names the key``.
_LINE = re.compile(
    r"^[ \t]*(?:[-*+•][ \t]+)?(?P<key>\**(?:candidate[ _#-]?)?#?\[?[0-9]{1,9}\]?\**)[ \t]*"
    r"(?P<mark>[:=.)])[ \t*]*(?P<value>true|yes|relevant|false|no|irrelevant|not relevant)\b"
    r"(?P<rest>[^\n]*)$",
    re.I | re.M,
)
#: A reason may follow a verdict; the rest of a sentence may not.
_REASON = re.compile(r"[*.! \t]*(?:$|[.,;(]|[-–—]{1,2}[ \t])")
_SENTENCE = re.compile(
    r"^[ \t*]*(?:the[ ])?(?:only[ ])?relevant[ ]?(?:candidates?|numbers?|ones?)?"
    r"(?:[ ](?:are|is))?[ ]?:?[ *]*"
    r"(?P<numbers>[0-9]{1,9}(?:(?:[ ]?,[ ]?and[ ]|[ ]?[,&][ ]?|[ ]and[ ])[0-9]{1,9})*+)[*. \t]*$",
    re.I | re.M,
)


def read_verdicts(text: str, count: int) -> dict[int, bool]:
    """Return number to verdict for what can be read of an answer about ``count`` candidates.

    Code fences, words around the object, single quotes, trailing commas, ``"yes"`` or ``1`` for
    ``true``, and keys like ``[0]`` or ``candidate 0`` are understood; so are objects about one
    candidate each (``{"0": {"relevant": true}}``, ``[{"id": 0, "relevant": true}]``) and a line
    for each (``- 0: true``, ``1. false``). Of a truncated object what is complete is read. A list
    of numbers, or "The relevant candidates are 0 and 2.", names the relevant ones, and so the
    irrelevant too; a list of as many verdicts as there are candidates is theirs in their order.
    Of several objects the last counts: models think, and may quote, before they answer; what
    stands in a string of an object is none. Numbers of no candidate are left out.

    Of an answer of more than ``LONGEST`` characters only the last ``LONGEST`` are read. The time
    grows with the length that is read, whatever the answer.
    """
    unfenced = re.sub(r"\A\s*`+\w*\s*", "", text[-LONGEST:])
    # The braces may be missing.
    bare, _, end = _pairs(unfenced, 0, count)
    if verdicts := _of_objects(unfenced, end, count):
        return verdicts
    if verdicts := max(bare, _of_lines(unfenced, count), key=len):
        return verdicts
    if verdicts := _listed(unfenced, count):
        return verdicts
    *_, last = [None, *_SENTENCE.finditer(unfenced)]
    named = {int(n) for n in re.findall("[0-9]+", last["numbers"])} if last else set()
    return {number: number in named for number in range(count)} if last else {}


def _of_objects(text: str, at: int, count: int) -> dict[int, bool]:
    """Return the verdicts of the last object, or of the last run of objects about one each."""
    verdicts: dict[int, bool] = {}
    run_ends = -1
    while (brace := text.find("{", at)) >= 0:
        read, single, end = _pairs(text, brace + 1, count)
        if single and run_ends >= 0 and _NEXT_RECORD.fullmatch(text, run_ends, brace + 1):
            read = {**verdicts, **read}
        if read:
            verdicts, run_ends = read, end if single else -1
        at = end
    return verdicts


def _pairs(text: str, at: int, count: int) -> tuple[dict[int, bool], bool, int]:
    """Return the verdicts of consecutive pairs, from an index on; whether they are of an object
    about one candidate; and the index where they end.
    """
    verdicts: dict[int, bool] = {}
    fields: dict[str, str] = {}
    while True:
        at = _after(text, at)
        verdict: bool | None = None
        if (pair := _PAIR.match(text, at)) is not None:
            at, verdict = pair.end(), _verdict(pair["value"])
            fields[_plain(pair["key"])] = pair["value"]
        elif (pair := _LIST_PAIR.match(text, at)) is not None:
            at = pair.end()
        elif (pair := _OBJECT.match(text, at)) and _number(pair["key"], count) is not None:
            inner: dict[str, str] = {}
            at = pair.end()
            while (field := _PAIR.match(text, at := _after(text, at))) is not None:
                at = field.end()
                inner[_plain(field["key"])] = field["value"]
            verdict = _field_verdict(inner)
            closed = _CLOSED.match(text, at)
            at = closed.end() if closed else at
        else:
            break
        number = _number(pair["key"], count)
        if number is not None and verdict is not None:
            verdicts[number] = verdict
    if verdicts:
        return verdicts, False, at
    ids = [_number(value, count) for name, value in fields.items() if name in _IDS]
    verdict = _field_verdict(fields)
    if len(ids) == 1 and ids[0] is not None and verdict is not None:
        return {ids[0]: verdict}, True, at
    return {}, False, at


def _field_verdict(fields: dict[str, str]) -> bool | None:
    return next((_verdict(fields[name]) for name in fields if name in _RELEVANT), None)


def _after(text: str, at: int) -> int:
    between = _BETWEEN.match(text, at)
    assert between is not None  # it may be empty
    return between.end()


def _plain(text: str) -> str:
    return text.strip("\"'*`.! \t\n").lower()


def _number(key: str, count: int) -> int | None:
    """Return a candidate's number below ``count``; ``None`` for any other text."""
    match = _NUMBER.fullmatch(key.strip("\"'*` \t\n")[:40])
    return int(match[1]) if match and int(match[1]) < count else None


def _verdict(value: str) -> bool | None:
    plain = _plain(value)
    return True if plain in _YES else False if plain in _NO else None


def _of_lines(text: str, count: int) -> dict[int, bool]:
    """Return the verdicts of lines that begin with a number and a verdict."""
    verdicts: dict[int, bool] = {}
    for line in _LINE.finditer(text):
        number, verdict = _number(line["key"], MANY), _verdict(line["value"])
        whole = not line["rest"].strip("*.! \t\r")
        reasoned = line["mark"] in ":=" and _REASON.match(line["rest"])
        if number is not None and verdict is not None and (whole or reasoned):
            verdicts[number] = verdict
    # Counted from 1 on: it is unclear whether these are numbers or only places.
    if count in verdicts and 0 not in verdicts:
        return {}
    return {number: verdict for number, verdict in verdicts.items() if number < count}


def _listed(text: str, count: int) -> dict[int, bool]:
    """Return the verdicts by the last list that stands alone, or is said to be of the relevant.

    A number in brackets inside a sentence is no list: it may be what the model refuses to do.
    """
    for match in reversed([*_LIST.finditer(text)]):
        start = match.start()
        line = text.rfind("\n", max(0, start - HEAD), start) + 1
        if not line and start > HEAD:
            continue
        words = re.findall(r"\w+", text[line:start].lower())
        if not _INTRODUCING.issuperset(words) or not _NO_WORDS.match(text, match.end()):
            continue
        closed = match[0].endswith("]")
        items = match[0].strip("[]").split(",")
        # The last number of an open list may be the front of a longer one.
        items = [item for item in items[: None if closed else -1] if item.strip()]
        numbers = [_number(item, MANY) for item in items]
        if None not in numbers:
            return {number: number in numbers for number in range(count)}
        verdicts = [
            (number, verdict)
            for number, item in enumerate(items)
            if numbers[number] is None and (verdict := _verdict(item)) is not None
        ]
        if closed and len(verdicts) == len(items) == count:
            return dict(verdicts)
    return {}
