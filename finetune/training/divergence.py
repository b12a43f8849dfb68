"""Trainings whose loss is no number, or worse than a guess: nothing is saved of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from casewright.errors import InputError

_MEND = "Lower training.learning_rate or training.max_grad_norm, and train into another folder."


def check_finite(step: int, figures: Mapping[str, Any]) -> None:
    """Look at what a trainer tells of a step.

    Raises:
        InputError: Its loss or the length of its gradient is no finite number.
    """
    for name in ("loss", "grad_norm", "train_loss"):
        value = figures.get(name)
        if value is not None and not math.isfinite(value):
            raise InputError(
                f"The training went astray: {name} is {value} at step {step}. Nothing was saved. "
                f"{_MEND}"
            )


def check_learned(before: float | None, after: float | None, vocabulary: int) -> None:
    """Look at the losses on the validation set.

    Args:
        before: Before the first step, in nats a token; ``None`` where it was not measured.
        after: After the last one.
        vocabulary: How many tokens there are: who guesses has the loss of its logarithm.

    Raises:
        InputError: The loss rose to more than that of a guess, or is no finite number.
    """
    if after is None or (
        math.isfinite(after) and after <= max(before or 0.0, math.log(vocabulary))
    ):
        return
    raise InputError(
        f"The training went astray: the validation loss was {before or math.nan:.4g} before and is "
        f"{after:.4g} after it, more than a guess has. Nothing was saved. {_MEND}"
    )
