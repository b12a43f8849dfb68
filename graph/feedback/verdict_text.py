"""Parsing of a chat model's verdicts on candidates' relevance, such as ``{"0": true}``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

#: Maximum number of characters that are read, from the end of an answer.
MAX_CHARACTERS = 20_000
_BOOL_READER = TypeAdapter(bool)
_VERDICT_WORDS = {"relevant": True, "irrelevant": False, "not relevant": False}
#: Keys of a candidate's number and of its verdict, in a JSON object about one candidate.
_NUMBER_KEYS = ("id", "number", "index", "candidate", "candidate_id")
_VERDICT_KEYS = ("relevant", "is_relevant", "verdict", "judgement", "judgment", "answer")
_CANDIDATE = re.compile(r"(?:candidate[\s_#-]?)?#?\[?([0-9]{1,9})\]?", re.I)
_OPENING = re.compile(r"[\[{]")
_FENCE = re.compile(r"\A\s*`+\w*|`+\s*\Z")
#: Matches ``- 0: true`` and ``candidate 2: yes, it names the key``. The verdict must be at
#: the end of the line or before punctuation.
_LINE = re.compile(
    r"^[ \t]*(?:[-*+•][ \t]+)?\**((?:candidate[ _#-]?)?#?\[?[0-9]{1,9}\]?)\**[ \t]*[:=][ \t*]*"
    r"(true|yes|relevant|false|no|irrelevant)\b(?=[*.! \t]*(?:$|[.,;(]|[-–—]{1,2}[ \t]))",
    re.I | re.M,
)


def read_verdicts(text: str, count: int) -> dict[int, bool]:
    """Return the verdicts of an answer on ``count`` candidates, by number; True means relevant.

    Besides the requested JSON object, these forms are accepted: text and code fences around JSON;
    ``"yes"`` or ``1`` for ``true``; keys like ``[0]`` or ``candidate 0``; nested JSON such as
    ``{"0": {"relevant": true}}`` or ``[{"id": 0, "relevant": true}]``; a line for each candidate. A
    list has the numbers of the relevant candidates, or ``count`` verdicts. Of truncated JSON, the
    complete part is read. Of several objects, the last one with verdicts is used, since models
    reason and quote before they answer. Only the last ``MAX_CHARACTERS`` characters are read.
    """
    text = _FENCE.sub("", text[-MAX_CHARACTERS:]).strip()
    verdicts: dict[int, bool] = {}
    for value, is_whole in _values(text):
        # A list of numbers within a sentence is skipped: it may list irrelevant candidates.
        if is_whole or isinstance(value, dict) or (value and isinstance(value[0], dict)):
            verdicts = _verdicts(value, count) or verdicts
    if not verdicts:
        lines = ((_number(line[1], count), _verdict(line[2])) for line in _LINE.finditer(text))
        verdicts = {n: verdict for n, verdict in lines if n is not None and verdict is not None}
    return verdicts


def _values(text: str) -> Iterator[tuple[Any, bool]]:
    """Yield each JSON object or list of a text, with True if it is the whole text."""
    decoder, position = json.JSONDecoder(), 0
    while (opening := _OPENING.search(text, position)) is not None:
        start = opening.start()
        try:
            value, position = decoder.raw_decode(text, start)
        except RecursionError:
            # A text with so many brackets has no verdicts; it would take long to try each bracket.
            position = start + 500
        except ValueError:
            position = start + 1
            with suppress(ValueError):
                value, position = from_json(text[start:], allow_partial=True), len(text)
                # The last item of an unclosed list may be truncated, so it is dropped.
                yield value if isinstance(value, dict) else value[:-1], start == 0
        else:
            yield value, start == 0 and position == len(text)


def _verdicts(value: Any, count: int, depth: int = 2) -> dict[int, bool]:
    """Return the verdicts in a JSON value, or else in a value at most ``depth`` levels down."""
    if isinstance(value, list):
        if value and all(isinstance(item, dict) for item in value):
            pairs = [(_first_value(item, _NUMBER_KEYS), item) for item in value]
        elif value and any(_number(item, count) is None for item in value):
            # Here, the items are verdicts; in ``else``, they are numbers of relevant candidates.
            pairs = list(enumerate(value)) if len(value) == count else []
        else:
            numbers = {_number(item, count) for item in value}
            return {number: number in numbers for number in range(count)}
    elif any(name in value for name in _NUMBER_KEYS):
        pairs = [(_first_value(value, _NUMBER_KEYS), value)]
    else:
        pairs = list(value.items())
    verdicts = {
        number: verdict
        for key, item in pairs
        if (number := _number(key, count)) is not None and (verdict := _verdict(item)) is not None
    }
    if verdicts or not depth or isinstance(value, list):
        return verdicts
    nested = [item for item in value.values() if isinstance(item, dict | list)]
    return next(filter(None, (_verdicts(item, count, depth - 1) for item in nested[::-1])), {})


def _first_value(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if name in record), None)


def _number(key: Any, count: int) -> int | None:
    """Return the number in a key or list item; ``None`` if it is no number below ``count``."""
    match = _CANDIDATE.fullmatch(str(key).strip()[:40]) if isinstance(key, str | int) else None
    return int(match[1]) if match and int(match[1]) < count else None


def _verdict(item: Any) -> bool | None:
    if isinstance(item, dict):
        item = _first_value(item, _VERDICT_KEYS)
    if isinstance(item, str):
        item = _VERDICT_WORDS.get(item.strip().lower(), item.strip())
    try:
        return _BOOL_READER.validate_python(item)
    except ValidationError:
        return None
