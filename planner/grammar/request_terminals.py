"""The terminals that a request supplies: spans of its question and fields of its context."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import accumulate, islice, pairwise
from typing import Any

from casewright.planner.grammar.terminals import (
    CONTEXT_TERMINALS,
    MAX_CONTEXT_FIELDS,
    MAX_NAME_CHARACTERS,
    MAX_QUESTION_CHARACTERS,
    MAX_QUESTION_WORDS,
    MAX_TEXT_CHARACTERS,
    SPAN,
    quoted,
)
from casewright.planner.spans import RUNS
from casewright.tools import Parameter
from casewright.tools.alias import NAME

# A parameter of each kind, by the name of the terminal for context fields of this kind.
_PARAMETER_OF = {name: Parameter("value", kind=kind) for kind, name in CONTEXT_TERMINALS.items()}
# A piece that no span contains, since the question's white space is normalised.
_BOUNDARY = "\n"


def context_terminals(context: Mapping[str, Any]) -> dict[str, str]:
    """Return the definitions of the context's terminals, by name.

    Each kind of parameter that a field fits has a terminal. The terminals match the first
    ``MAX_CONTEXT_FIELDS`` fields that are not null and whose names are identifiers of at most
    ``MAX_NAME_CHARACTERS`` characters.
    """
    usable = (
        (field, value)
        for field, value in context.items()
        if value is not None and len(field) <= MAX_NAME_CHARACTERS and NAME.fullmatch(field)
    )
    fields = list(islice(usable, MAX_CONTEXT_FIELDS))
    return {
        terminal: f'{terminal}:"context."({"|".join(names)})'
        for terminal, parameter in _PARAMETER_OF.items()
        if (names := [f'"{field}"' for field, value in fields if parameter.fits(value)])
    }


def span_terminal(question: str) -> str:
    """Return the definition of the terminal of spans; empty if the question has no usable word.

    A span is a run of whole words of the question in the same spelling, with single spaces. Words
    after ``MAX_QUESTION_CHARACTERS`` characters or ``MAX_QUESTION_WORDS`` words are ignored.

    llguidance's ``substring_words`` also matches the empty text, punctuation at the ends and, in
    escaped text, parts of words. So this function splits the question into words and gaps, as
    ``is_span`` does, and escapes them as JSON; a run of pieces must start and end with a word.
    """
    words, gaps = _words_and_gaps(question)
    if all(len(word) > MAX_TEXT_CHARACTERS for word in words):
        return ""
    if len(words) == 1:
        text = f'"{words[0]}"'
        return f"{SPAN}:{quoted(text)}"
    word_characters = set().union(*words)
    gap_characters = set().union(*gaps) - word_characters
    # Words and the gaps between them, alternately.
    pieces = [words[0]]
    for gap, word in zip(gaps, words[1:], strict=True):
        # A character may be part of a word at one position and of a gap at another; no span crosses
        # this gap. Quote and backslash are the only characters of a question that JSON escapes,
        # since white space is normalised and control characters are refused.
        escaped = gap.replace("\\", "\\\\").replace('"', '\\"')
        pieces += [escaped if word_characters.isdisjoint(gap) else _BOUNDARY, word]
    excluded = sorted({*gap_characters, "\\", "\n"})
    # The first or last character of a span.
    edge = "[^" + "".join(f"\\x{{{ord(char):x}}}" for char in excluded) + "]"
    is_too_long = sum(map(len, pieces)) > MAX_TEXT_CHARACTERS
    middle = f".{{0,{MAX_TEXT_CHARACTERS - 2}}}" if is_too_long else ".*"
    chunks = json.dumps({"substring_chunks": pieces}, ensure_ascii=False)
    return f'{SPAN}:"\\"" (Q & /{edge}({middle}{edge})?/) "\\""\nQ:%regex {chunks}'


def _words_and_gaps(question: str) -> tuple[list[str], list[str]]:
    """Return the question's words, and the gaps between adjacent words.

    A word is a run of letters, digits and marks in the question's case-folded text, as in
    ``is_span``. Folding can turn one character into several, never several into one.
    """
    normalised = " ".join(question[:MAX_QUESTION_CHARACTERS].split())
    folded = normalised.casefold()
    runs = [run.span() for run in islice(RUNS.finditer(folded), MAX_QUESTION_WORDS + 1)]
    if len(folded) != len(normalised):
        sizes = [len(char.casefold()) for char in normalised]
        # Maps positions in the case-folded text to positions in the text before folding.
        unfolded = {position: n for n, position in enumerate(accumulate(sizes, initial=0))}
        runs = [(unfolded[a], unfolded[b]) for a, b in runs if a in unfolded and b in unfolded]
    if len(question) > MAX_QUESTION_CHARACTERS or len(runs) > MAX_QUESTION_WORDS:
        # The last word may be incomplete.
        runs = runs[:-1]
    words = [normalised[start:end] for start, end in runs]
    gaps = [normalised[end:start] for (_, end), (start, _) in pairwise(runs)]
    return words, gaps
