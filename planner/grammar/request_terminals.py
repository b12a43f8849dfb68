"""The terminals that a request supplies: spans of its question and fields of its context."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import accumulate, islice, pairwise
from typing import Any

from casewright.planner.grammar.terminals import (
    CONTEXT,
    CONTEXT_FIELDS,
    CONTEXT_NAME,
    SPAN,
    SPAN_CHARACTERS,
    SPAN_WORDS,
    TEXT_CHARACTERS,
    quoted,
)
from casewright.planner.spans import RUNS
from casewright.tools import Parameter
from casewright.tools.alias import NAME

_KINDS = {name: Parameter("value", kind=kind) for kind, name in CONTEXT.items()}
# Separator: never in a question, whose white space is normalised, so no run of pieces crosses it.
_BARRIER = "\n"


def context_terminals(context: Mapping[str, Any]) -> dict[str, str]:
    """Return the definitions of the context's terminals by name; types without fields are left out.

    The terminals match the first ``CONTEXT_FIELDS`` fields that are not null and whose names are
    identifiers of at most ``CONTEXT_NAME`` characters.
    """
    usable = (
        (field, value)
        for field, value in context.items()
        if value is not None and len(field) <= CONTEXT_NAME and NAME.fullmatch(field)
    )
    fields = list(islice(usable, CONTEXT_FIELDS))
    definitions = {}
    for terminal, kind in _KINDS.items():
        fitting = [f'"{field}"' for field, value in fields if kind.fits(value)]
        if fitting:
            definitions[terminal] = f'{terminal}:"context."({"|".join(fitting)})'
    return definitions


def span_terminal(question: str) -> str:
    """Return the definition of the terminal of spans; empty if there is no span.

    A span is a run of whole words of the question in the same spelling, with single spaces. Only
    the first ``SPAN_CHARACTERS`` and ``SPAN_WORDS`` of the question are read.

    llguidance's ``substring_words`` also matches the empty text, punctuation at the ends and, in
    escaped text, parts of words. Here the question is split into words and gaps as in ``is_span``,
    each piece is escaped as JSON, and a run of pieces must start and end with a word.
    """
    words, gaps = _cut(question)
    if all(len(word) > TEXT_CHARACTERS for word in words):
        return ""
    if len(words) == 1:
        text = f'"{words[0]}"'
        return f"{SPAN}:{quoted(text)}"
    inside = set().union(*words)
    outside = set().union(*gaps) - inside
    pieces = [words[0]]
    for gap, word in zip(gaps, words[1:], strict=True):
        # A character may belong to a word at one position and to a gap at another; a span does not
        # cross such a gap. Quote and backslash are the only characters of a question that JSON
        # escapes, since white space is normalised and control characters are refused.
        escaped = gap.replace("\\", "\\\\").replace('"', '\\"')
        pieces += [escaped if inside.isdisjoint(gap) else _BARRIER, word]
    end = "[^" + "".join(f"\\x{{{ord(char):x}}}" for char in sorted({*outside, "\\", "\n"})) + "]"
    between = f".{{0,{TEXT_CHARACTERS - 2}}}" if sum(map(len, pieces)) > TEXT_CHARACTERS else ".*"
    runs = json.dumps({"substring_chunks": pieces}, ensure_ascii=False)
    return f'{SPAN}:"\\"" (Q & /{end}({between}{end})?/) "\\""\nQ:%regex {runs}'


def _cut(question: str) -> tuple[list[str], list[str]]:
    """Return the question's words, and the gaps between adjacent words.

    A word is a run of letters, digits and marks in the question's case-folded text, as in
    ``is_span``; folding can make several characters of one, never fewer.
    """
    plain = " ".join(question[:SPAN_CHARACTERS].split())
    folded = plain.casefold()
    runs = [run.span() for run in islice(RUNS.finditer(folded), SPAN_WORDS + 1)]
    if len(folded) != len(plain):
        sizes = [len(char.casefold()) for char in plain]
        index = {size: i for i, size in enumerate(accumulate(sizes, initial=0))}
        runs = [(index[a], index[b]) for a, b in runs if a in index and b in index]
    if len(question) > SPAN_CHARACTERS or len(runs) > SPAN_WORDS:
        # The last word may be cut.
        runs = runs[:-1]
    words = [plain[start:end] for start, end in runs]
    gaps = [plain[end:start] for (_, end), (start, _) in pairwise(runs)]
    return words, gaps
