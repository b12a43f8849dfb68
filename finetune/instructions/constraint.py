"""Constraints on an answer that can be verified: a closed list of kinds, each with its check.

After IFEval (Zhou et al. 2023, arXiv:2311.07911, section 2 and table 1): what is asked of the
answer's form is worded freely, and verified by a program.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import regex as re

from casewright.finetune.instructions.plan_constraint import only_tools, without_tool
from casewright.finetune.instructions.words import lines, sentences, words

_BULLET = re.compile(r"^\s*[-*•]\s+\S")
_TITLE = re.compile(r"<<[^<>\n]+>>")


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint, and how it is said.

    Attributes:
        kind: One of ``KINDS``.
        parameters: What this kind needs, by name.
        wording: The sentence that asks for it.
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
        parameters: Name to type; ``list`` is a list of texts.
        check: Of the parameters, the question as it was before the constraint, and the answer.
        parts: What of an answer it governs; kinds that share one are not put together.
    """

    says: str
    parameters: Mapping[str, type]
    check: Callable[[Mapping[str, Any], str, str], bool]
    parts: frozenset[str]


def holds(constraint: Constraint, question: str, answer: str) -> bool:
    """Say whether an answer keeps a constraint; an empty answer keeps none."""
    kind = KINDS[constraint.kind]
    return bool(answer.strip() and kind.check(constraint.parameters, question, answer))


def _upper(_: Mapping[str, Any], question: str, answer: str) -> bool:
    return answer == answer.upper() and answer != answer.lower()


def _lower(_: Mapping[str, Any], question: str, answer: str) -> bool:
    return answer == answer.lower() and answer != answer.upper()


def has_word(answer: str, word: str) -> bool:
    """Say whether a text holds a whole word, in any case; hyphens and apostrophes are inside."""
    pattern = rf"(?<![\w'’\-]){re.escape(word.casefold())}(?![\w'’\-])"
    return bool(re.search(pattern, answer.casefold()))


def _quoted(_: Mapping[str, Any], question: str, answer: str) -> bool:
    inside = answer[1:-1]
    return len(answer) > 2 and answer[0] == answer[-1] == '"' and '"' not in inside


def _json(given: Mapping[str, Any], question: str, answer: str) -> bool:
    try:
        read = json.loads(answer)
    except (ValueError, RecursionError):
        return False
    value = read.get(given["key"]) if isinstance(read, dict) and len(read) == 1 else None
    return isinstance(value, str) and bool(value.strip())


def _bullets(given: Mapping[str, Any], question: str, answer: str) -> bool:
    return bool(sum(_BULLET.match(line) is not None for line in lines(answer)) == given["n"])


def _repeats(_: Mapping[str, Any], question: str, answer: str) -> bool:
    asked, said = question.strip(), answer.strip()
    return bool(asked) and said.startswith(asked) and bool(said[len(asked) :].strip())


def _excludes(given: Mapping[str, Any], question: str, answer: str) -> bool:
    return not has_word(answer, given["word"])


def _title(given: Mapping[str, Any], question: str, answer: str) -> bool:
    first, _, rest = answer.strip().partition("\n")
    return _TITLE.fullmatch(first.strip()) is not None and bool(rest.strip())


def _postscript(_: Mapping[str, Any], question: str, answer: str) -> bool:
    *before, last = lines(answer)
    return bool(before) and last.casefold().startswith("p.s.") and len(last.strip()) > 4


#: Kinds of constraints on a text, by name.
TEXT_KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "all_upper": Kind("the whole answer in capital letters", {}, _upper, frozenset({"case"})),
        "all_lower": Kind("the whole answer in small letters", {}, _lower, frozenset({"case"})),
        "at_most_words": Kind(
            "at most n words",
            {"n": int},
            lambda given, _, answer: len(words(answer)) <= given["n"],
            frozenset({"length"}),
        ),
        "at_most_sentences": Kind(
            "at most n sentences",
            {"n": int},
            lambda given, _, answer: len(sentences(answer)) <= given["n"],
            frozenset({"length", "layout"}),
        ),
        "begins_with": Kind(
            "the answer begins with this phrase, exactly",
            {"phrase": str},
            lambda given, _, answer: answer.startswith(given["phrase"]),
            frozenset({"start"}),
        ),
        "ends_with": Kind(
            "the answer ends with this phrase, exactly",
            {"phrase": str},
            lambda given, _, answer: answer.endswith(given["phrase"]),
            frozenset({"end"}),
        ),
        "quoted": Kind(
            "the whole answer between double quotation marks",
            {},
            _quoted,
            frozenset({"start", "end"}),
        ),
        "json": Kind(
            "the answer is a JSON object with this one key, whose value is a text",
            {"key": str},
            _json,
            frozenset({"start", "end", "comma", "case", "length", "layout"}),
        ),
        "bullets": Kind(
            "a list of exactly n bullet points, each a line that begins with '- '",
            {"n": int},
            _bullets,
            frozenset({"layout"}),
        ),
        "repeats_request": Kind(
            "the answer first repeats the original request word for word",
            {},
            _repeats,
            frozenset({"start", "case", "length", "comma", "words"}),
        ),
        "no_commas": Kind(
            "no commas",
            {},
            lambda given, _, answer: "," not in answer,
            frozenset({"comma"}),
        ),
        "includes": Kind(
            "the answer holds this word",
            {"word": str},
            lambda given, _, answer: has_word(answer, given["word"]),
            frozenset({"words"}),
        ),
        "excludes": Kind(
            "the answer does not hold this word",
            {"word": str},
            _excludes,
            frozenset({"words"}),
        ),
        "title": Kind(
            "the first line is a title in double angular brackets, such as <<A title>>",
            {},
            _title,
            frozenset({"start"}),
        ),
        "postscript": Kind(
            "the last line is a postscript that begins with 'P.S.'",
            {},
            _postscript,
            frozenset({"end"}),
        ),
        "lines": Kind(
            "exactly n lines that are not blank",
            {"n": int},
            lambda given, _, answer: len(lines(answer)) == given["n"],
            frozenset({"layout"}),
        ),
        "one_of": Kind(
            "the answer is one of these labels and nothing else",
            {"labels": list},
            lambda given, _, answer: answer in given["labels"],
            frozenset({"start", "end", "layout", "case", "length", "words"}),
        ),
    }
)

_PLAN = frozenset({"plan"})
#: Every kind, by name: those on a plan's tools too.
KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        **TEXT_KINDS,
        "only_tools": Kind("no tool but these", {"tools": list}, only_tools, _PLAN),
        "without_tool": Kind("this tool is not called", {"tool": str}, without_tool, _PLAN),
    }
)


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
