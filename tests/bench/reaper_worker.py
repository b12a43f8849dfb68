"""The work of a process of the bench's tests; it imports little, so that it starts at once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from casewright.bench.reaper.trial import ReaperTrial
from casewright.errors import InputError


def measured_nothing(trial: ReaperTrial, name: str, opening: AbstractContextManager[Any]) -> None:
    """Stand for the rows of a training, in a process of its own."""
    with opening:
        if name == "bad":
            raise InputError("It went astray.")
