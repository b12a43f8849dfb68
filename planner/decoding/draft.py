"""What a plan that is there already proposes at each point of the one that a model writes.

Speculative decoding (Leviathan et al. 2023) whose draft is another planner's plan: the model reads
several of its tokens in one step, and those that it would have chosen itself stay. After another
choice of the model, the draft goes on where the text that was written last occurs in it (LLMA, Yang
et al. 2023, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from casewright.errors import GrammarError

if TYPE_CHECKING:
    from casewright.planner.decoding.matcher import Matcher
    from casewright.planner.language_model import TokenModel

#: Characters that must be alike for a draft to go on behind them.
SHORTEST = 4


class Draft:
    """A draft of a plan.

    Args:
        model: Whose tokens.
        text: The draft; it may be empty, wrong, or no plan.
    """

    def __init__(self, model: TokenModel, text: str) -> None:
        self._model = model
        self._text = text

    def proposed(self, matcher: Matcher, written: Sequence[int], most: int) -> list[list[int]]:
        """Return the choices that the draft proposes next, each with the tokens forced after it.

        Args:
            matcher: Of the plan; it stays where it is.
            written: The plan's tokens so far.
            most: Tokens at most.
        """
        text = rest(self._text, self._model.decode(written))
        left = self._model.encode_plan(text)
        ahead, parts = matcher.copy(), list[list[int]]()
        tokens: list[int] = []
        while left and not ahead.finished:
            try:
                ahead.consume(left[0])
                part = [left[0], *ahead.forced()]
            except GrammarError:
                break
            if len(tokens) + len(part) > most:
                break
            parts.append(part)
            tokens += part
            if left[: len(part)] == part:
                left = left[len(part) :]
            else:
                # Forced text is cut into tokens by the grammar's own rule.
                read = self._model.decode(tokens)
                left = self._model.encode_plan(text[len(read) :]) if text.startswith(read) else []
        return parts


def rest(draft: str, written: str) -> str:
    """Return how a draft goes on behind a text.

    Where the text parted from the draft, that is what follows the longest end of the text that the
    draft holds, up to the end of a line: what is read and not written costs time. Empty where the
    draft holds no ``SHORTEST`` characters of that end.
    """
    if draft.startswith(written):
        return draft[len(written) :]
    for size in range(len(written), SHORTEST - 1, -1):
        place = draft.find(written[-size:])
        if place >= 0:
            start = place + size
            # Where a line was just ended, the next one follows.
            end = draft.find("\n", start + 1)
            return draft[start : end if end > 0 else None]
    return ""
