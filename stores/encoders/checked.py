"""What an embedding answered, checked: one finite row a text, all of one length."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError


def checked_vectors(
    answer: Any, count: int, dimension: int | None, encoder: str
) -> NDArray[np.float32]:
    """Return an embedding's answer as an array (count, dimension).

    Args:
        answer: What it answered for ``count`` texts.
        count: How many texts it was asked to embed, at least 1.
        dimension: Length of a row; ``None`` where it is not known yet.
        encoder: Its name, for messages.

    Raises:
        InputError: No numbers, fewer or more rows than texts, rows of another length, or NaN or
            infinity in one.
    """
    wanted = f"({count}, {dimension or 'dimension'})"
    try:
        # What is too large for a float32 becomes infinity, and is refused below.
        with np.errstate(over="ignore"):
            made = np.asarray(answer, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Encoder {encoder!r} answered {count} texts with what is no array of numbers: "
            f"{error}. Expected shape {wanted}, one row a text."
        ) from error
    if made.ndim != 2 or len(made) != count or made.shape[1] != (dimension or made.shape[1] or 1):
        raise InputError(
            f"Encoder {encoder!r} answered {count} texts with an array of shape {made.shape}; "
            f"expected {wanted}, one row a text. Has its model changed since it was opened?"
        )
    if not np.isfinite(made).all():
        row = int(np.flatnonzero(~np.isfinite(made).all(axis=1))[0])
        raise InputError(
            f"Encoder {encoder!r} answered text {row + 1} of {count} with NaN or infinity. "
            "Its vectors must be finite."
        )
    return made
