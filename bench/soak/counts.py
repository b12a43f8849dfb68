"""The outcomes of the trials of a campaign, and how many trials there are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from casewright.stores.progress import told_progress

#: Failures that are named; the rest is counted.
NAMED = 20


@dataclass
class Counts:
    """Trials of one kind, by their outcomes.

    Attributes:
        name: What was done.
        tried: How many trials.
        sound: After which everything was as it should be.
        told: After which an error of ours said what is wrong.
        lost: Cases or answers that had been acknowledged, and are gone without a word.
        wrong: Failures, each with the trial that repeats it: other answers, other errors, deaths.
        skipped: Why no trial was possible; empty where there were some.
    """

    name: str
    tried: int = 0
    sound: int = 0
    told: int = 0
    lost: int = 0
    wrong: list[str] = field(default_factory=list)
    skipped: str = ""

    def add(self, outcome: str, trial: str) -> None:
        """Count a trial: ``sound``, ``told``, or a failure in words."""
        self.tried += 1
        if outcome in ("sound", "told"):
            setattr(self, outcome, getattr(self, outcome) + 1)
        else:
            self.wrong.append(f"{self.name}, {trial}: {outcome}")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The extent of the trials of one kind.

    Attributes:
        seconds: How long, about.
        seed: Of every draw.
        most: How many trials; no bound without it.
        service: Returns an ASGI application of a toolbox, a planner and a file of threads; kinds
            of trials with a service need it.
    """

    seconds: float
    seed: int = 0
    most: int | None = None
    service: Callable[..., Any] | None = None

    def trials(self, counts: Counts) -> Iterator[int]:
        """Yield numbers from 0 until the time is over or enough is counted, at least one."""
        ends, number = time.monotonic() + self.seconds, 0
        with told_progress(counts.name, self.most, "trials") as advance:
            while number == 0 or (
                time.monotonic() < ends and (self.most is None or counts.tried < self.most)
            ):
                before = counts.tried
                yield number
                number += 1
                advance(counts.tried - before)
