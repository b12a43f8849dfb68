"""What a process of the bench's tests runs; it imports little, so that it starts at once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from casewright.bench.reaper.trial import ReaperTrial
from casewright.errors import InputError


def taken(trial: ReaperTrial, name: str, opening: AbstractContextManager[Any]) -> float:
    """Stand for the rows of a training, in a process of its own."""
    with opening:
        if name == "bad":
            raise InputError("It went astray.")
        return float(len(name) + trial.seed)
