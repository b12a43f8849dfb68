"""Draft tokens for speculative decoding of a plan.

In this form of speculative decoding (Leviathan et al. 2023) the draft is another planner's plan:
the model reads several of its tokens in one step and keeps those that it would choose itself. After
another choice, the draft is resumed behind the end of the written text (LLMA, Yang et al. 2023,
section 3).
"""

from __future__ import annotations

from collections.abc import Sequence

from casewright.errors import GrammarError
from casewright.planner.decoding.matcher import Matcher
from casewright.planner.language_model import LanguageModel

#: Minimum number of characters at the end of the written text that a draft must contain.
MIN_OVERLAP = 4


def propose(
    model: LanguageModel, draft: str, matcher: Matcher, written: Sequence[int], limit: int
) -> list[list[int]]:
    """Return proposals for the model's next choices: each a token and the forced tokens after it.

    Args:
        draft: A text, which may be empty or an invalid plan.
        matcher: Matcher of the plan; it is not advanced.
        limit: Maximum number of tokens in all.
    """
    text = continuation(draft, model.decode(written))
    unread = model.encode_plan(text)
    lookahead, proposals = matcher.copy(), list[list[int]]()
    tokens: list[int] = []
    while unread and not lookahead.finished:
        try:
            lookahead.consume(unread[0])
            proposal = [unread[0], *lookahead.forced()]
        except GrammarError:
            break
        if len(tokens) + len(proposal) > limit:
            break
        proposals.append(proposal)
        tokens += proposal
        if unread[: len(proposal)] == proposal:
            unread = unread[len(proposal) :]
        else:
            # The grammar tokenizes forced text in another way than ``encode_plan``.
            proposed = model.decode(tokens)
            remaining = text[len(proposed) :] if text.startswith(proposed) else ""
            unread = model.encode_plan(remaining)
    return proposals


def continuation(draft: str, written: str) -> str:
    """Return the part of a draft that continues the written text.

    If the draft does not start with the text, the part is the rest of the line after the longest
    suffix of the text that the draft contains: more tokens would often be rejected, which costs
    time. It is empty if that suffix has fewer than ``MIN_OVERLAP`` characters.
    """
    if draft.startswith(written):
        return draft[len(written) :]
    for size in range(len(written), MIN_OVERLAP - 1, -1):
        position = draft.find(written[-size:])
        if position >= 0:
            start = position + size
            # At the end of a line, the continuation is the next line.
            end = draft.find("\n", start + 1)
            return draft[start : end if end > 0 else None]
    return ""
