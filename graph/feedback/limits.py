"""The bounds of a feedback loop."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

from casewright.errors import InputError


@dataclass(frozen=True, slots=True)
class FeedbackLimits:
    """How much one loop may do.

    Attributes:
        first: Cases that the question itself is to find.
        more: Cases that every later search is to find, those seen before not counted.
        rounds: Searches, the first one included; each is judged in one call.
        candidates: Cases that are judged in all.
        tokens: Tokens of all that is judged, the relevant shown as context included: as the judge
            counts them, or else estimated at four characters each.
        seconds: Time for the whole.
        characters: Longest text of a case that is shown; longer ones are cut.

    Raises:
        InputError: A bound is not positive.
    """

    first: int = 10
    more: int = 5
    rounds: int = 5
    candidates: int = 40
    tokens: int = 30_000
    seconds: float = 15.0
    characters: int = 4_000

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            whole = name != "seconds"
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
                raise InputError(
                    f"FeedbackLimits.{name} is {value!r}. Give a "
                    f"{'whole number' if whole else 'number'} above 0."
                )
            if not 0 < value <= threading.TIMEOUT_MAX:
                raise InputError(
                    f"FeedbackLimits.{name} is {value}. Give a number above 0, and at most "
                    f"{threading.TIMEOUT_MAX:.0f}."
                )


def estimated_tokens(*texts: str) -> int:
    """Return about how many tokens texts have: one for four characters."""
    return sum(math.ceil(len(text) / 4) for text in texts)
