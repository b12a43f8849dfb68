"""Draft tokens for speculative decoding of a plan.

In this form of speculative decoding (Leviathan et al. 2023) the draft is another planner's plan:
the model reads several of its tokens in one step and keeps those that it would choose itself. After
a different choice, the draft continues where it contains the last written text (LLMA, Yang et al.
2023, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from casewright.errors import GrammarError
from casewright.planner.decoding.matcher import Matcher

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

#: Number of equal characters after which a draft continues.
SHORTEST = 4


def propose(
    model: LanguageModel, draft: str, matcher: Matcher, written: Sequence[int], limit: int
) -> list[list[int]]:
    """Return the next choices that a draft proposes, each with the forced tokens after it.

    Args:
        draft: A text, which may be empty or an invalid plan.
        matcher: Matcher of the plan; it is not advanced.
    """
    text = rest(draft, model.decode(written))
    left = model.encode_plan(text)
    ahead, parts = matcher.copy(), list[list[int]]()
    tokens: list[int] = []
    while left and not ahead.finished:
        try:
            ahead.consume(left[0])
            part = [left[0], *ahead.forced()]
        except GrammarError:
            break
        if len(tokens) + len(part) > limit:
            break
        parts.append(part)
        tokens += part
        if left[: len(part)] == part:
            left = left[len(part) :]
        else:
            # The grammar tokenizes forced text by its own rule.
            read = model.decode(tokens)
            left = model.encode_plan(text[len(read) :]) if text.startswith(read) else []
    return parts


def rest(draft: str, written: str) -> str:
    """Return the continuation of a draft behind a text.

    If the text differs from the draft, the continuation is what follows the longest suffix of the
    text that the draft contains, up to the end of the line, since rejected tokens cost time. It is
    empty if that suffix has fewer than ``SHORTEST`` characters.
    """
    if draft.startswith(written):
        return draft[len(written) :]
    for size in range(len(written), SHORTEST - 1, -1):
        position = draft.find(written[-size:])
        if position >= 0:
            start = position + size
            # At the end of a line, the continuation is the next line.
            end = draft.find("\n", start + 1)
            return draft[start : end if end > 0 else None]
    return ""
