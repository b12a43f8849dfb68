"""Draft tokens for speculative decoding of a plan.

In this form of speculative decoding (Leviathan et al. 2023) the draft is another planner's plan:
the model reads several of the draft's tokens in one step and keeps the tokens that it would choose
itself. If the model chooses another token, the longest suffix of the written text that occurs in
the draft is found, and the draft is resumed after it (LLMA, Yang et al. 2023, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence

from casewright.errors import GrammarError
from casewright.planner.decoding.matcher import Matcher
from casewright.planner.language_model import LanguageModel

#: A suffix of the written text is looked up in the draft if it has at least this many characters.
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
    draft_text = continuation(draft, model.decode(written))
    remaining = model.encode_plan(draft_text)
    lookahead, proposals = matcher.copy(), list[list[int]]()
    proposed: list[int] = []
    while remaining and not lookahead.finished:
        try:
            lookahead.consume(remaining[0])
            proposal = [remaining[0], *lookahead.consume_forced()]
        except GrammarError:
            break
        if len(proposed) + len(proposal) > limit:
            break
        proposals.append(proposal)
        proposed += proposal
        if remaining[: len(proposal)] == proposal:
            remaining = remaining[len(proposal) :]
        else:
            # The grammar may tokenize forced text in another way than ``encode_plan``.
            text = model.decode(proposed)
            remaining_text = draft_text[len(text) :] if draft_text.startswith(text) else ""
            remaining = model.encode_plan(remaining_text)
    return proposals


def continuation(draft: str, written: str) -> str:
    """Return the part of a draft that continues the written text.

    If the draft starts with the text, the part is the rest of the draft. Otherwise the longest
    suffix of the text that occurs in the draft is found. The part is the rest of the suffix's line,
    since later tokens would often be rejected, which costs time. The part is empty if the suffix is
    shorter than ``MIN_SUFFIX_CHARACTERS``.
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
