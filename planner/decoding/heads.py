"""The key/value states of prompt heads, kept between requests within a bound of memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from casewright.planner.decoding.room import States


class Heads:
    """Keeps the heads that were used last. What it returns is never written to.

    Args:
        most_bytes: What all of them may take; a head that is larger by itself is not kept.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[tuple[int, ...], States] = OrderedDict()
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """What the kept ones take."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._kept)

    def get(
        self, tokens: tuple[int, ...], make: Callable[[tuple[int, ...]], States]
    ) -> tuple[States, bool]:
        """Return the states of a head, made if need be, and whether they were there."""
        if (found := self._kept.get(tokens)) is not None:
            self._kept.move_to_end(tokens)
            return found, True
        made = make(tokens)
        if made.bytes <= self._most:
            self._kept[tokens] = made
            self._bytes += made.bytes
            while self._bytes > self._most:
                _, dropped = self._kept.popitem(last=False)
                self._bytes -= dropped.bytes
        return made, False
