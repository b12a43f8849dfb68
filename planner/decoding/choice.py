"""Which of the tokens that may come next is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from casewright.planner.decoding.matcher import Matcher

#: Takes the logits of the vocabulary, float32 of shape ``(vocabulary,)``, and what may be written.
Choose = Callable[[NDArray[np.float32], "Matcher"], int]


def greedy(logits: NDArray[np.float32], matcher: Matcher) -> int:
    """Return the likeliest token of those that may come next; the first of equals."""
    allowed: NDArray[Any] = matcher.allowed()
    return int(allowed[np.argmax(logits[allowed])])
