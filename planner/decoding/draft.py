"""Draft tokens for speculative decoding of a plan.

In this form of speculative decoding (Leviathan et al. 2023) the draft is another planner's plan:
the model reads several of the draft's tokens in one step and keeps the tokens that it would choose
itself. If the model chooses another token, the draft is resumed after the longest suffix of the
written text that the draft contains (LLMA, Yang et al. 2023, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence

from casewright.errors import GrammarError
from casewright.planner.decoding.matcher import Matcher
from casewright.planner.language_model import LanguageModel

#: Minimum number of characters of the suffix of a written text that is looked up in the draft.
MIN_SUFFIX_CHARACTERS = 4


def propose(
    model: LanguageModel, draft: str, matcher: Matcher, written: Sequence[int], limit: int
) -> list[list[int]]:
    """Return proposals for the next choices; each is a token and the forced tokens after it.

    Args:
        draft: A text, which may be empty or an invalid plan.
        matcher: Matcher of the plan; it is not advanced.
        written: The tokens of the plan so far.
        limit: Maximum number of tokens of all proposals together.
    """
    text = continuation(draft, model.decode(written))
    remaining = model.encode_plan(text)
    lookahead, proposals = matcher.copy(), list[list[int]]()
    tokens: list[int] = []
    while remaining and not lookahead.finished:
        try:
            lookahead.consume(remaining[0])
            proposal = [remaining[0], *lookahead.consume_forced()]
        except GrammarError:
            break
        if len(tokens) + len(proposal) > limit:
            break
        proposals.append(proposal)
        tokens += proposal
        if remaining[: len(proposal)] == proposal:
            remaining = remaining[len(proposal) :]
        else:
            # The grammar may tokenize forced text in another way than ``encode_plan``.
            proposed = model.decode(tokens)
            remaining_text = text[len(proposed) :] if text.startswith(proposed) else ""
            remaining = model.encode_plan(remaining_text)
    return proposals


def continuation(draft: str, written: str) -> str:
    """Return the part of a draft that continues the written text.

    If the draft does not start with the text, the part starts after the longest suffix of the text
    that the draft contains; it is empty if this suffix is shorter than ``MIN_SUFFIX_CHARACTERS``.
    The part ends with its first line: later tokens would often be rejected, which costs time.
    """
    if draft.startswith(written):
        return draft[len(written) :]
    for length in range(len(written), MIN_SUFFIX_CHARACTERS - 1, -1):
        position = draft.find(written[-length:])
        if position >= 0:
            start = position + length
            # A suffix at the end of a line is continued by the next line.
            end = draft.find("\n", start + 1)
            return draft[start : end if end > 0 else None]
    return ""
