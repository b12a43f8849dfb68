"""Scoring with a question's states reused for its answers, beside scoring each answer whole."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from casewright.finetune.demonstrations import Asked, ModelScorer

#: Turns that each way has, one after the other.
TURNS = 3


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds per 1,000 scored answers, of the same answers in one run.

    Attributes:
        reused: With the context's states reused.
        apart: Without.
        difference: Largest difference between the two ways' log-probabilities.
        answers: How many answers each turn scored.
    """

    reused: float
    apart: float
    difference: float
    answers: int


def measure_speed(reused: ModelScorer, apart: ModelScorer, asked: Sequence[Asked]) -> Speed:
    """Score the same answers both ways, in turns, and take each way's median."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    logprobs: dict[bool, list[float]] = {}
    answers = sum(len(one.answers) for one in asked)
    for _ in range(TURNS):
        for reuse, scorer in ((True, reused), (False, apart)):
            started = time.perf_counter()
            found = dict(scorer.score(asked))
            seconds[reuse].append(1000 * (time.perf_counter() - started) / answers)
            logprobs[reuse] = [one.logprob for place in range(len(asked)) for one in found[place]]
    difference = max(abs(a - b) for a, b in zip(logprobs[True], logprobs[False], strict=True))
    return Speed(
        statistics.median(seconds[True]), statistics.median(seconds[False]), difference, answers
    )
