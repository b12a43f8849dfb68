"""Latencies of tools, measured in the calls of this process."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

#: For each tool, the seconds of at most this many latest calls are kept.
_MAX_CALLS = 50


class Latencies:
    """A thread-safe record of the measured seconds of each tool's calls."""

    def __init__(self) -> None:
        self._times: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_MAX_CALLS))

    def add(self, outcomes: Iterable[Mapping[str, Any]]) -> None:
        """Add the calls of finished steps, given by the JSON form of each step's ``Outcome``."""
        for outcome in outcomes:
            # A skipped step has called no tool.
            if outcome["attempts"] > 0:
                self._times[outcome["tool"]].append(outcome["milliseconds"] / 1000)

    def seconds(self) -> dict[str, float]:
        """Return the median seconds of the latest calls, by tool."""
        return {tool: median(tuple(times)) for tool, times in tuple(self._times.items())}
