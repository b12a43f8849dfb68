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
        self._calls: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_MAX_CALLS))

    def add(self, outcomes: Iterable[Mapping[str, Any]]) -> None:
        """Add the calls of finished steps, each the JSON form of an ``Outcome``."""
        for outcome in outcomes:
            if outcome["attempts"]:
                self._calls[outcome["tool"]].append(outcome["milliseconds"] / 1000)

    def seconds(self) -> dict[str, float]:
        """Return the median seconds of the latest calls, by tool."""
        return {tool: median(tuple(calls)) for tool, calls in tuple(self._calls.items())}
