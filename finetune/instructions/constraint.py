"""Verifiable constraints on an answer: a closed list of kinds, each with its check.

After IFEval (Zhou et al. 2023, arXiv:2311.07911, section 2 and table 1): a constraint's wording is
free, and a program verifies it.
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
    """A constraint of one of ``KINDS``, and its wording in a prompt."""

    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    wording: str = ""


@dataclass(frozen=True, slots=True)
class ConstraintKind:
    """A kind of constraint.

    Attributes:
        governs: The parts of an answer that it constrains, separated by spaces; kinds with a common
            part are not combined.
        check: Verifies an answer, from the parameters and the answer.
    """

    governs: str
    check: Callable[[Mapping[str, Any], str], bool]

    @property
    def parts(self) -> frozenset[str]:
        """The parts of an answer that it constrains, as a set."""
        return frozenset(self.governs.split())


def holds(constraint: Constraint, answer: str) -> bool:
    """Return whether an answer keeps a constraint; an empty answer keeps none."""
    return bool(answer.strip() and KINDS[constraint.kind].check(constraint.parameters, answer))


def has_word(answer: str, word: str) -> bool:
    """Return whether a text has a word, in any case; hyphens and apostrophes belong to words."""
    pattern = rf"(?<![\w'’\-]){re.escape(word.casefold())}(?![\w'’\-])"
    return bool(re.search(pattern, answer.casefold()))


def _json(parameters: Mapping[str, Any], answer: str) -> bool:
    try:
        decoded = json.loads(answer)
    except (ValueError, RecursionError):
        return False
    one_key = isinstance(decoded, dict) and len(decoded) == 1
    value = decoded.get(parameters["key"]) if one_key else None
    return isinstance(value, str) and bool(value.strip())


def _plan_without(forbidden: Callable[[str, Mapping[str, Any]], bool]) -> Callable[..., bool]:
    """Return the check that the answer is a plan without forbidden tools."""

    def check(parameters: Mapping[str, Any], answer: str) -> bool:
        try:
            return not any(forbidden(tool, parameters) for tool in parse_plan(answer).tools)
        except PlanError:
            return False

    return check


#: The kinds by name, the last two on a plan's tools; p are the parameters and a is the answer.
KINDS: Mapping[str, ConstraintKind] = {
    "at_most_words": ConstraintKind("length", lambda p, a: len(a.split()) <= p["n"]),
    "begins_with": ConstraintKind("start", lambda p, a: a.startswith(p["phrase"])),
    "ends_with": ConstraintKind("end", lambda p, a: a.endswith(p["phrase"])),
    "quoted": ConstraintKind(
        "start end", lambda p, a: len(a) > 2 and a[0] == a[-1] == '"' and '"' not in a[1:-1]
    ),
    "json": ConstraintKind("start end comma length", _json),
    "no_commas": ConstraintKind("comma", lambda p, a: "," not in a),
    "includes": ConstraintKind("words", lambda p, a: has_word(a, p["word"])),
    "excludes": ConstraintKind("words", lambda p, a: not has_word(a, p["word"])),
    "only_tools": ConstraintKind("plan", _plan_without(lambda tool, p: tool not in p["tools"])),
    "without_tool": ConstraintKind("plan", _plan_without(lambda tool, p: tool == p["tool"])),
}
