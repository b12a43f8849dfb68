"""Proposals of a draft at each point of the plan that a model writes.

Speculative decoding (Leviathan et al. 2023) whose draft is another planner's plan: the model reads
several of its tokens in one step and keeps those that it would have chosen itself. Where the model
chooses otherwise, the draft continues where the text that was written last occurs in it (LLMA, Yang
et al. 2023, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from casewright.errors import GrammarError
from casewright.planner.decoding.matcher import Matcher

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

#: Characters that must agree for a draft to continue behind them.
SHORTEST = 4


def propose(
    model: LanguageModel, draft: str, matcher: Matcher, written: Sequence[int], limit: int
) -> list[list[int]]:
    """Return the choices that a draft proposes next, each with the tokens forced after it.

    Args:
        draft: A text; it may be empty, wrong, or no plan.
        matcher: Of the plan; it is not advanced.
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
            # Forced text is cut into tokens by the grammar's own rule.
            read = model.decode(tokens)
            left = model.encode_plan(text[len(read) :]) if text.startswith(read) else []
    return parts


def rest(draft: str, written: str) -> str:
    """Return the continuation of a draft behind a text.

    Where the text differs from the draft, it is what follows the longest suffix of the text that
    the draft contains, up to the end of a line: what is read and not written costs time. Empty if
    the draft does not contain ``SHORTEST`` characters of that suffix.
    """
    if draft.startswith(written):
        return draft[len(written) :]
    for size in range(len(written), SHORTEST - 1, -1):
        position = draft.find(written[-size:])
        if position >= 0:
            start = position + size
            # At the end of a line, the next line follows.
            end = draft.find("\n", start + 1)
            return draft[start : end if end > 0 else None]
    return ""
