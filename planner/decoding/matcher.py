"""The protocol of matchers, which say what tokens may follow, and the choice of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Matcher(Protocol):
    """Follows the tokens of one text; for one thread at a time.

    Every method raises ``GrammarError`` where no token can follow.
    """

    def copy(self) -> Matcher:
        """Return an independent matcher of the same text at the same position."""

    def forced(self) -> list[int]:
        """Consume and return the tokens without an alternative; none where there is a choice."""

    def allowed(self) -> NDArray[np.intp]:
        """Return the ids of the tokens that may come next, ascending; at least one."""

    def consume(self, token: int) -> None:
        """Advance by a token."""

    @property
    def finished(self) -> bool:
        """True where nothing can follow."""


#: Returns a token, given logits of shape ``(vocabulary,)`` and the matcher that bounds it.
Choose = Callable[[NDArray[np.float32], Matcher], int]


def greedy(logits: NDArray[np.float32], matcher: Matcher) -> int:
    """Return the likeliest allowed token; the first of equals."""
    allowed = matcher.allowed()
    return int(allowed[np.argmax(logits[allowed])])
