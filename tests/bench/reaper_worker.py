"""The work of a process of the bench's tests."""

from __future__ import annotations

from typing import Any

from casewright.errors import InputError


def measured_nothing(trial: Any, name: str) -> None:
    """Stand for the rows of a training, in a process of its own."""
    if name == "bad":
        raise InputError("It went astray.")
