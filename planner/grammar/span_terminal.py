"""The terminal of spans: every run of whole words of the question, and nothing else.

llguidance's ``substring_words`` also lets through the empty text, punctuation at the ends and,
where the text is escaped afterwards, halves of words. Here the question is cut into words and what
stands between them as ``is_span`` cuts it, each piece is escaped as JSON, and a run of pieces must
start and end with a word.
"""

from __future__ import annotations

import json
from itertools import accumulate, islice, pairwise

from casewright.planner.grammar.bounds import SPAN_CHARACTERS, SPAN_WORDS, TEXT_CHARACTERS
from casewright.planner.grammar.terminals import SPAN, quoted
from casewright.planner.spans import RUNS

# In no question after its spaces were made one each, so no run of pieces goes across it.
_BARRIER = "\n"


def span_terminal(question: str) -> str:
    """Return the definition of the terminal, or an empty text where there is no span.

    Spans are written as the question has them, with single spaces. Only the first
    ``SPAN_CHARACTERS`` and ``SPAN_WORDS`` of the question are read.
    """
    words, gaps = cut(question)
    if all(len(word) > TEXT_CHARACTERS for word in words):
        return ""
    if len(words) == 1:
        alone = f'"{words[0]}"'
        return f"{SPAN}:{quoted(alone)}"
    inside = set().union(*words)
    outside = set().union(*gaps) - inside
    pieces = [words[0]]
    for gap, word in zip(gaps, words[1:], strict=True):
        # Where a character is part of a word here and of a gap there, its place alone tells
        # which; a span does not go across.
        pieces += [_escaped(gap) if inside.isdisjoint(gap) else _BARRIER, word]
    end = "[^" + "".join(f"\\x{{{ord(char):x}}}" for char in sorted({*outside, "\\", "\n"})) + "]"
    between = f".{{0,{TEXT_CHARACTERS - 2}}}" if sum(map(len, pieces)) > TEXT_CHARACTERS else ".*"
    runs = json.dumps({"substring_chunks": pieces}, ensure_ascii=False)
    return f'{SPAN}:"\\"" (Q & /{end}({between}{end})?/) "\\""\nQ:%regex {runs}'


def cut(question: str) -> tuple[list[str], list[str]]:
    """Return the question's words, and what stands between each and the next.

    A word is a run of letters, digits and marks in the question's case-folded text, as in
    ``is_span``; folding can make several characters of one, never fewer.
    """
    plain = " ".join(question[:SPAN_CHARACTERS].split())
    folded = plain.casefold()
    runs = [run.span() for run in islice(RUNS.finditer(folded), SPAN_WORDS + 1)]
    if len(folded) != len(plain):
        sizes = [len(char.casefold()) for char in plain]
        place = {size: own for own, size in enumerate(accumulate(sizes, initial=0))}
        runs = [(place[a], place[b]) for a, b in runs if a in place and b in place]
    if len(question) > SPAN_CHARACTERS or len(runs) > SPAN_WORDS:
        # It may be half a word.
        runs = runs[:-1]
    words = [plain[start:end] for start, end in runs]
    gaps = [plain[end:start] for (_, end), (start, _) in pairwise(runs)]
    return words, gaps


def _escaped(text: str) -> str:
    # A question has no other characters that JSON escapes: spaces became one each, control
    # characters are refused.
    return text.replace("\\", "\\\\").replace('"', '\\"')
