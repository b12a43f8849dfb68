"""The quality number of a case, inside its vector (RAGSys, Contal & McGoldrick 2024, section 4).

A case is stored with ``(b - mean) / (10 * spread)`` beside its facets' unit vectors, and the query
carries ``(1 - lambda_b) * 10 * spread`` there, so that one dot product and a constant give
``lambda_b * sum_j w_j cos_j + (1 - lambda_b) * b`` exactly, for any mean and spread. They are fixed
when the collection is made, from the cases of the first ``add``, and only keep the number small:
stored raw, it would ruin an approximate index.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from casewright.errors import InputError


def in_range(quality: Any, quality_range: tuple[float, float]) -> float | None:
    """Return a case's quality as a plain number inside the range, or ``None``.

    Raises:
        InputError: It is no number, NaN or infinite.
    """
    if quality is None:
        return None
    try:
        # NumPy's numbers are real ones too.
        number = float(quality) if isinstance(quality, Real) else math.nan
    except OverflowError:
        number = math.inf
    low, high = quality_range
    if not math.isfinite(number):
        raise InputError(
            f"A case has quality {quality!r}. Give a finite number from {low} to {high}, or None "
            "when nobody measured it."
        )
    return min(max(number, low), high)


@dataclass(frozen=True, slots=True)
class QualityScale:
    """How a collection stores quality.

    Attributes:
        low: Lowest quality; below it is clamped.
        high: Highest quality; above it is clamped.
        mean: What an absent quality counts as.
        spread: Standard deviation over the first cases.
    """

    low: float
    high: float
    mean: float
    spread: float

    @classmethod
    def fit(
        cls, qualities: Iterable[float | None], quality_range: tuple[float, float]
    ) -> QualityScale:
        """Make the scale from the qualities of a collection's first cases."""
        low, high = quality_range
        known = [min(max(q, low), high) for q in qualities if q is not None]
        mean = float(np.mean(known)) if known else (low + high) / 2
        spread = float(np.std(known)) if known else 0.0
        return cls(low, high, mean, spread if spread > 1e-9 else (high - low) / 4)

    def clamp(self, quality: float | None) -> float:
        """Return the quality that counts for a case."""
        if quality is None:
            return self.mean
        return min(max(quality, self.low), self.high)

    def stored(self, quality: float | None) -> float:
        """Return the number that is stored in the vector."""
        return (self.clamp(quality) - self.mean) / (10 * self.spread)

    def asked(self, lambda_b: float) -> tuple[float, float]:
        """Return the query's number, and the constant to add to the dot product."""
        return (1 - lambda_b) * 10 * self.spread, (1 - lambda_b) * self.mean
