"""Constraints on an answer that can be verified: a closed list of kinds, each with its check.

After IFEval (Zhou et al. 2023, arXiv:2311.07911, section 2 and table 1): a constraint on the form
of an answer is worded freely, and verified by a program.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import regex as re

from casewright.errors import PlanError
from casewright.planner import parse_plan

_FILE = Path(__file__).parent / "wordings.toml"
#: The wordings of constraints, by kind, and the texts that rules add.
WORDINGS: Mapping[str, Any] = tomllib.loads(_FILE.read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint, and its wording in a prompt.

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
        says: Its description in the prompt of a chat model.
        governs: The parts of an answer that it constrains, words with spaces between; two kinds
            with a common part are not combined.
        check: Of the parameters and the answer.
        parameters: Name to type, ``int`` or ``str``.
    """

    says: str
    governs: str
    check: Callable[[Mapping[str, Any], str], bool]
    parameters: Mapping[str, type] = field(default_factory=dict)

    @property
    def parts(self) -> frozenset[str]:
        """The parts of an answer that it constrains."""
        return frozenset(self.governs.split())


def holds(constraint: Constraint, answer: str) -> bool:
    """Return whether an answer keeps a constraint; an empty answer keeps none."""
    return bool(answer.strip() and KINDS[constraint.kind].check(constraint.parameters, answer))


def has_word(answer: str, word: str) -> bool:
    """Return whether a text holds a whole word, in any case; hyphens and apostrophes are inside."""
    pattern = rf"(?<![\w'’\-]){re.escape(word.casefold())}(?![\w'’\-])"
    return bool(re.search(pattern, answer.casefold()))


def _json(given: Mapping[str, Any], answer: str) -> bool:
    try:
        read = json.loads(answer)
    except (ValueError, RecursionError):
        return False
    value = read.get(given["key"]) if isinstance(read, dict) and len(read) == 1 else None
    return isinstance(value, str) and bool(value.strip())


def _calls_none_of(gone: Callable[[str, Mapping[str, Any]], bool]) -> Callable[..., bool]:
    """Return the check that the answer is a plan without certain tools."""

    def check(given: Mapping[str, Any], answer: str) -> bool:
        try:
            return not any(gone(tool, given) for tool in parse_plan(answer).tools)
        except PlanError:
            return False

    return check


#: Kinds of constraints on a text, by name; of a check, p are the parameters and a the answer.
TEXT_KINDS: Mapping[str, Kind] = {
    "at_most_words": Kind(
        "at most n words", "length", lambda p, a: len(a.split()) <= p["n"], {"n": int}
    ),
    "begins_with": Kind(
        "the answer begins with this phrase, exactly",
        "start",
        lambda p, a: a.startswith(p["phrase"]),
        {"phrase": str},
    ),
    "ends_with": Kind(
        "the answer ends with this phrase, exactly",
        "end",
        lambda p, a: a.endswith(p["phrase"]),
        {"phrase": str},
    ),
    "quoted": Kind(
        "the whole answer between double quotation marks",
        "start end",
        lambda p, a: len(a) > 2 and a[0] == a[-1] == '"' and '"' not in a[1:-1],
    ),
    "json": Kind(
        "the answer is a JSON object with this one key, whose value is a text",
        "start end comma length",
        _json,
        {"key": str},
    ),
    "no_commas": Kind("no commas", "comma", lambda p, a: "," not in a),
    "includes": Kind(
        "the answer holds this word", "words", lambda p, a: has_word(a, p["word"]), {"word": str}
    ),
    "excludes": Kind(
        "the answer does not hold this word",
        "words",
        lambda p, a: not has_word(a, p["word"]),
        {"word": str},
    ),
}
#: Every kind, by name: those on a plan's tools too.
KINDS: Mapping[str, Kind] = {
    **TEXT_KINDS,
    "only_tools": Kind(
        "no tool but these",
        "plan",
        _calls_none_of(lambda tool, given: tool not in given["tools"]),
    ),
    "without_tool": Kind(
        "this tool is not called",
        "plan",
        _calls_none_of(lambda tool, given: tool == given["tool"]),
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
        return type(value) is int and value > 0
    return isinstance(value, str) and bool(value.strip())
