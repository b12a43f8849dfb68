"""The greedy choice, and the protocol of matchers, which return the allowed next tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Matcher(Protocol):
    """Tracks the tokens of one text. Not thread-safe.

    Every method raises ``GrammarError`` if the text is incomplete and no token can continue it.
    """

    def copy(self) -> Matcher:
        """Return an independent matcher of the same text at the same position."""

    def consume_forced(self) -> list[int]:
        """Consume and return the tokens that must come next; empty if there is a choice."""

    def allowed(self) -> NDArray[np.intp]:
        """Return the ids of the allowed next tokens, ascending; at least one."""

    def consume(self, token: int) -> None:
        """Advance by a token."""

    @property
    def finished(self) -> bool:
        """True if the text is complete: only an end token can follow."""


#: A function that chooses an allowed token, given logits ``(vocabulary,)`` and the matcher.
Choose = Callable[[NDArray[np.float32], Matcher], int]


def greedy(logits: NDArray[np.float32], matcher: Matcher) -> int:
    """Return the most probable allowed token; of equally probable tokens, the lowest id."""
    allowed = matcher.allowed()
    return int(allowed[np.argmax(logits[allowed])])
