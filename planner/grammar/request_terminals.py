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
from casewright.planner.spans import WORD_RUNS
from casewright.tools import Parameter
from casewright.tools.alias import NAME

# Names of the terminals for context fields, each with a parameter that the fields must fit.
_PARAMETERS = {name: Parameter("value", kind=kind) for kind, name in CONTEXT_TERMINALS.items()}
# Replaces a gap that no span may cross: the regex of a span does not match a line feed.
_BOUNDARY = "\n"


def context_terminals(context: Mapping[str, Any]) -> dict[str, str]:
    """Return the definitions of the context's terminals, by name.

    There is a terminal for each kind of parameter that at least one field fits. The terminals match
    only the first ``MAX_CONTEXT_FIELDS`` fields that are not null and have an identifier of at most
    ``MAX_NAME_CHARACTERS`` characters as their name.
    """
    usable = (
        (field, value)
        for field, value in context.items()
        if value is not None and len(field) <= MAX_NAME_CHARACTERS and NAME.fullmatch(field)
    )
    fields = list(islice(usable, MAX_CONTEXT_FIELDS))
    return {
        terminal: f'{terminal}:"context."({"|".join(names)})'
        for terminal, parameter in _PARAMETERS.items()
        if (names := [f'"{field}"' for field, value in fields if parameter.fits(value)])
    }


def span_terminal(question: str) -> str:
    """Return the definition of the span terminal; empty if every word of the question is too long.

    A span is adjacent whole words of the question, spelled as there, but with single spaces. Words
    after ``MAX_QUESTION_CHARACTERS`` characters or ``MAX_QUESTION_WORDS`` words are ignored.

    llguidance's ``substring_words`` also matches the empty text, punctuation at the ends and, in
    escaped text, parts of words. So this function splits the question into words and gaps, as
    ``is_span`` does, and escapes them as JSON. A span must start and end with a word.
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
        # A character may be in a word at one position and in a gap at another. No span crosses such
        # a gap. Quote and backslash are the only characters of a question that JSON escapes,
        # since white space is normalised and control characters are refused.
        escaped = gap.replace("\\", "\\\\").replace('"', '\\"')
        pieces += [escaped if word_characters.isdisjoint(gap) else _BOUNDARY, word]
    excluded = sorted({*gap_characters, "\\", "\n"})
    # Regex of the first or last character of a span.
    edge = "[^" + "".join(f"\\x{{{ord(char):x}}}" for char in excluded) + "]"
    needs_limit = sum(map(len, pieces)) > MAX_TEXT_CHARACTERS
    middle = f".{{0,{MAX_TEXT_CHARACTERS - 2}}}" if needs_limit else ".*"
    chunks = json.dumps({"substring_chunks": pieces}, ensure_ascii=False)
    return f'{SPAN}:"\\"" (Q & /{edge}({middle}{edge})?/) "\\""\nQ:%regex {chunks}'


def _words_and_gaps(question: str) -> tuple[list[str], list[str]]:
    """Return the question's words, and the gaps between adjacent words.

    A word is a run of letters, digits and marks in the question's case-folded text, as in
    ``is_span``. Case-folding can turn one character into several, never several into one.
    """
    normalised = " ".join(question[:MAX_QUESTION_CHARACTERS].split())
    folded = normalised.casefold()
    ranges = [run.span() for run in islice(WORD_RUNS.finditer(folded), MAX_QUESTION_WORDS + 1)]
    if len(folded) != len(normalised):
        sizes = [len(char.casefold()) for char in normalised]
        # Maps positions in the case-folded text to positions in the text before folding.
        unfolded = {position: n for n, position in enumerate(accumulate(sizes, initial=0))}
        # A word that begins or ends within one folded character is left out.
        ranges = [(unfolded[a], unfolded[b]) for a, b in ranges if a in unfolded and b in unfolded]
    if len(question) > MAX_QUESTION_CHARACTERS or len(ranges) > MAX_QUESTION_WORDS:
        # The last word may be incomplete.
        ranges = ranges[:-1]
    words = [normalised[start:end] for start, end in ranges]
    gaps = [normalised[end:start] for (_, end), (start, _) in pairwise(ranges)]
    return words, gaps
