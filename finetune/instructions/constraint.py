"""Constraints on an answer that can be verified: a closed list of kinds, each with its check.

After IFEval (Zhou et al. 2023, arXiv:2311.07911, section 2 and table 1): what is asked of the
answer's form is worded freely, and verified by a program.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import regex as re

from casewright.errors import PlanError
from casewright.finetune.instructions.words import lines, sentences, words
from casewright.planner import parse_plan

_BULLET = re.compile(r"^\s*[-*•]\s+\S")
_TITLE = re.compile(r"<<[^<>\n]+>>")


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint, and how it is said.

    Attributes:
        kind: One of ``KINDS``.
    """

    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    wording: str = ""

    def __str__(self) -> str:
        given = ",".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.kind}({given})" if given else self.kind


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of constraint.

    Attributes:
        says: What it asks, as a chat model is told it.
        governs: What of an answer, words with spaces between; kinds that share one are not put
            together.
        check: Of the parameters, the question as it was before the constraint, and the answer.
        parameters: Name to type; ``list`` is a list of texts.
    """

    says: str
    governs: str
    check: Callable[[Mapping[str, Any], str, str], bool]
    parameters: Mapping[str, type] = field(default_factory=dict)

    @property
    def parts(self) -> frozenset[str]:
        """What of an answer it governs."""
        return frozenset(self.governs.split())


def holds(constraint: Constraint, question: str, answer: str) -> bool:
    """Say whether an answer keeps a constraint; an empty answer keeps none."""
    kind = KINDS[constraint.kind]
    return bool(answer.strip() and kind.check(constraint.parameters, question, answer))


def has_word(answer: str, word: str) -> bool:
    """Say whether a text holds a whole word, in any case; hyphens and apostrophes are inside."""
    pattern = rf"(?<![\w'’\-]){re.escape(word.casefold())}(?![\w'’\-])"
    return bool(re.search(pattern, answer.casefold()))


def _json(given: Mapping[str, Any], question: str, answer: str) -> bool:
    try:
        read = json.loads(answer)
    except (ValueError, RecursionError):
        return False
    value = read.get(given["key"]) if isinstance(read, dict) and len(read) == 1 else None
    return isinstance(value, str) and bool(value.strip())


def _repeats(given: Mapping[str, Any], question: str, answer: str) -> bool:
    asked, said = question.strip(), answer.strip()
    return bool(asked) and said.startswith(asked) and bool(said[len(asked) :].strip())


def _title(given: Mapping[str, Any], question: str, answer: str) -> bool:
    first, _, rest = answer.strip().partition("\n")
    return _TITLE.fullmatch(first.strip()) is not None and bool(rest.strip())


def _postscript(given: Mapping[str, Any], question: str, answer: str) -> bool:
    *before, last = lines(answer)
    return bool(before) and last.casefold().startswith("p.s.") and len(last.strip()) > 4


def _calls_none_of(gone: Callable[[str, Mapping[str, Any]], bool]) -> Callable[..., bool]:
    """Return the check that the answer is a plan without certain tools."""

    def check(given: Mapping[str, Any], question: str, answer: str) -> bool:
        try:
            return not any(gone(tool, given) for tool in parse_plan(answer).tools)
        except PlanError:
            return False

    return check


#: Kinds of constraints on a text, by name; of a check, p are the parameters, q the question and a
#: the answer.
TEXT_KINDS: Mapping[str, Kind] = {
    "all_upper": Kind(
        "the whole answer in capital letters", "case", lambda p, q, a: a == a.upper() != a.lower()
    ),
    "all_lower": Kind(
        "the whole answer in small letters", "case", lambda p, q, a: a == a.lower() != a.upper()
    ),
    "at_most_words": Kind(
        "at most n words", "length", lambda p, q, a: len(words(a)) <= p["n"], {"n": int}
    ),
    "at_most_sentences": Kind(
        "at most n sentences",
        "length layout",
        lambda p, q, a: len(sentences(a)) <= p["n"],
        {"n": int},
    ),
    "begins_with": Kind(
        "the answer begins with this phrase, exactly",
        "start",
        lambda p, q, a: a.startswith(p["phrase"]),
        {"phrase": str},
    ),
    "ends_with": Kind(
        "the answer ends with this phrase, exactly",
        "end",
        lambda p, q, a: a.endswith(p["phrase"]),
        {"phrase": str},
    ),
    "quoted": Kind(
        "the whole answer between double quotation marks",
        "start end",
        lambda p, q, a: len(a) > 2 and a[0] == a[-1] == '"' and '"' not in a[1:-1],
    ),
    "json": Kind(
        "the answer is a JSON object with this one key, whose value is a text",
        "start end comma case length layout",
        _json,
        {"key": str},
    ),
    "bullets": Kind(
        "a list of exactly n bullet points, each a line that begins with '- '",
        "layout",
        lambda p, q, a: sum(_BULLET.match(line) is not None for line in lines(a)) == p["n"],
        {"n": int},
    ),
    "repeats_request": Kind(
        "the answer first repeats the original request word for word",
        "start case length comma words",
        _repeats,
    ),
    "no_commas": Kind("no commas", "comma", lambda p, q, a: "," not in a),
    "includes": Kind(
        "the answer holds this word",
        "words",
        lambda p, q, a: has_word(a, p["word"]),
        {"word": str},
    ),
    "excludes": Kind(
        "the answer does not hold this word",
        "words",
        lambda p, q, a: not has_word(a, p["word"]),
        {"word": str},
    ),
    "title": Kind(
        "the first line is a title in double angular brackets, such as <<A title>>", "start", _title
    ),
    "postscript": Kind("the last line is a postscript that begins with 'P.S.'", "end", _postscript),
    "lines": Kind(
        "exactly n lines that are not blank",
        "layout",
        lambda p, q, a: len(lines(a)) == p["n"],
        {"n": int},
    ),
    "one_of": Kind(
        "the answer is one of these labels and nothing else",
        "start end layout case length words",
        lambda p, q, a: a in p["labels"],
        {"labels": list},
    ),
}
#: Every kind, by name: those on a plan's tools too.
KINDS: Mapping[str, Kind] = {
    **TEXT_KINDS,
    "only_tools": Kind(
        "no tool but these",
        "plan",
        _calls_none_of(lambda tool, given: tool not in given["tools"]),
        {"tools": list},
    ),
    "without_tool": Kind(
        "this tool is not called",
        "plan",
        _calls_none_of(lambda tool, given: tool == given["tool"]),
        {"tool": str},
    ),
}


def read_constraint(record: Any) -> Constraint | None:
    """Return the constraint on a text that a decoded JSON value names, if it names one.

    Args:
        record: ``{"kind": …, "parameters": {…}}``.
    """
    name = record.get("kind") if isinstance(record, dict) else None
    kind = TEXT_KINDS.get(name) if isinstance(name, str) else None
    given = record.get("parameters") or {} if kind is not None else None
    if kind is None or not isinstance(given, dict) or set(given) != set(kind.parameters):
        return None
    if not all(_usable(given[name], type_) for name, type_ in kind.parameters.items()):
        return None
    return Constraint(str(name), dict(given))


def _usable(value: Any, type_: type) -> bool:
    if type_ is int:
        return isinstance(value, int) and not isinstance(value, bool) and value > 0
    if type_ is list:
        return isinstance(value, list) and bool(value) and all(_usable(v, str) for v in value)
    return isinstance(value, str) and bool(value.strip())
