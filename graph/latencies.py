"""Latencies of tools, measured in the calls of this process."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

#: Maximum number of a tool's latest calls whose seconds are kept.
_MAX_CALLS = 50


class Latencies:
    """A thread-safe record of the measured seconds of each tool's calls."""

    def __init__(self) -> None:
        self._seconds_by_tool: defaultdict[str, deque[float]] = defaultdict(
            lambda: deque(maxlen=_MAX_CALLS)
        )

    def add(self, outcomes: Iterable[Mapping[str, Any]]) -> None:
        """Add the calls of finished steps, each the JSON form of an ``Outcome``."""
        for outcome in outcomes:
            if outcome["attempts"]:
                self._seconds_by_tool[outcome["tool"]].append(outcome["milliseconds"] / 1000)

    def seconds(self) -> dict[str, float]:
        """Return the median seconds of the latest calls, by tool."""
        # Copies, since another thread may add a call.
        items = tuple(self._seconds_by_tool.items())
        return {tool: median(tuple(seconds)) for tool, seconds in items}
