"""So many clients at once, each asking one question after the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np

#: Asks one question; returns the milliseconds of the graph's stages, ``None`` without an answer.
Ask = Callable[[str], Awaitable[float | None]]


@dataclass(frozen=True, slots=True)
class Load:
    """What became of some questions.

    Attributes:
        milliseconds: Of each answer.
        seconds: Of all together.
        errors: Questions without an answer.
        cpu_seconds: Of the process that answered: what other processes take does not change it.
        stages: Of each answer, the milliseconds that its graph's stages took by themselves.
    """

    milliseconds: Sequence[float]
    seconds: float
    errors: int
    cpu_seconds: float = 0.0
    stages: Sequence[float] = ()

    @property
    def per_second(self) -> float:
        """Return how many were answered in a second."""
        return len(self.milliseconds) / self.seconds

    @property
    def cpu_milliseconds(self) -> float:
        """Return the computing time of one answer."""
        return self.cpu_seconds * 1000 / max(1, len(self.milliseconds))

    def percentile(self, share: float) -> float:
        """Return a percentile of the answers' milliseconds."""
        return float(np.percentile(self.milliseconds, share)) if self.milliseconds else 0.0

    @property
    def outside_milliseconds(self) -> float:
        """Return the median of what an answer took beside its stages; 0 where they are not told."""
        if not self.stages:
            return 0.0
        return float(np.median(np.subtract(self.milliseconds, self.stages)))


async def load(
    ask: Ask,
    questions: Sequence[str],
    clients: int,
    advance: Callable[[int], None] = lambda number: None,
    cpu: Callable[[], float] = time.process_time,
) -> Load:
    """Ask the questions by so many clients, and time every answer.

    Args:
        ask: Asks one.
        questions: In this order, each once.
        clients: How many ask at the same time.
        advance: Told of every answer.
        cpu: The seconds that the process that answers has computed so far.
    """
    left = iter(questions)
    times: list[float] = []
    stages: list[float] = []
    errors = 0

    async def client() -> None:
        nonlocal errors
        for question in left:
            started = time.perf_counter()
            inside = await ask(question)
            if inside is None:
                errors += 1
            else:
                times.append((time.perf_counter() - started) * 1000)
                stages.append(inside)
            advance(1)

    computed, started = cpu(), time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return Load(times, time.perf_counter() - started, errors, cpu() - computed, stages)
