"""Converts cases to stored points: embeds them, and scales their quality.

The vector stores the quality b too (RAGSys, Contal & McGoldrick 2024, section 4). After the facets'
unit vectors, a case's vector has ``(b - mean) / (10 * spread)``, and a query's vector has
``(1 - lambda_b) * 10 * spread``, so that one dot product and a constant give
``lambda_b * sum_j w_j cos_j + (1 - lambda_b) * b`` exactly, for any mean and spread. The mean and
the spread are those of the cases of the first ``add``. The scaling only keeps the stored number
small: a large number would ruin an approximate index.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import FacetError, InputError, SchemaMismatchError, StoreDamagedError
from casewright.stores.case import Case
from casewright.stores.schema import CaseSchema


def clamp(quality: Any, quality_range: tuple[float, float]) -> float | None:
    """Return a quality clamped to its range, or ``None``; raise ``InputError`` if not finite."""
    if quality is None:
        return None
    try:
        number = float(quality) if isinstance(quality, Real) else math.nan
    except OverflowError:
        number = math.inf
    low, high = quality_range
    if not math.isfinite(number):
        advice = f"Give a finite number from {low} to {high}, or None if it was not measured."
        raise InputError(f"A case has quality {quality!r}. {advice}")
    return min(max(number, low), high)


@dataclass(frozen=True, slots=True)
class QualityScale:
    """The scale by which a collection stores quality.

    ``low`` and ``high`` are the schema's range, to which every quality was clamped; ``mean``
    replaces an absent quality; ``spread`` is the standard deviation of the first cases' qualities.
    """

    low: float
    high: float
    mean: float
    spread: float

    @classmethod
    def fit(cls, qualities: Iterable[float | None], bounds: tuple[float, float]) -> QualityScale:
        """Return the scale for the qualities of a collection's first cases."""
        low, high = bounds
        known_qualities = [quality for quality in qualities if quality is not None]
        mean = float(np.mean(known_qualities)) if known_qualities else (low + high) / 2
        spread = float(np.std(known_qualities)) if known_qualities else 0.0
        # Almost equal qualities have no usable spread: a quarter of the range replaces it.
        return cls(low, high, mean, spread if spread > 1e-9 else (high - low) / 4)

    def stored(self, quality: float | None) -> float:
        """Return the number that stands for a quality in a stored vector."""
        return 0.0 if quality is None else (quality - self.mean) / (10 * self.spread)

    def query_terms(self, lambda_b: float) -> tuple[float, float]:
        """Return the number in the query's vector, and the constant to add to the dot product."""
        return (1 - lambda_b) * 10 * self.spread, (1 - lambda_b) * self.mean


def embed_cases(
    schema: CaseSchema,
    batch: list[Case],
    on_error: Callable[[Case, FacetError], None] | None,
    stored_count: int,
) -> tuple[list[Case], NDArray[np.float32]]:
    """Embed cases; return the embedded cases and their vectors, array (n, sum of dimensions).

    ``on_error`` is called with each case that cannot be embedded. Without ``on_error``, raise a
    ``FacetError``; its message has ``stored_count``, the number of cases of the earlier batches.
    """
    try:
        return batch, schema.vectors([case.problem for case in batch])
    except FacetError as error:
        if on_error is None:
            raise FacetError(
                f"The case {batch[error.row].id} cannot be added: {error} The {stored_count} cases "
                "of the batches before it are stored. Mend it, leave it out, or pass on_error= to "
                "go on without such cases.",
                error.facet,
                error.row,
            ) from error
    cases, unit_rows = [], [np.zeros((0, schema.dimension - 1), dtype=np.float32)]
    for case in batch:
        try:
            unit_rows.append(schema.vectors([case.problem]))
        except FacetError as error:
            on_error(case, error)
        else:
            cases.append(case)
    return cases, np.concatenate(unit_rows)


def point_parts(
    cases: Sequence[Case], units: NDArray[np.float32], scale: QualityScale
) -> tuple[list[str], NDArray[np.float32], list[dict[str, Any]]]:
    """Return ids, vectors and payloads of n cases, given their facets' unit vectors (n, d)."""
    quality = np.array([scale.stored(case.quality) for case in cases]).reshape(-1, 1)
    vectors = np.concatenate([units, quality], axis=1).astype(np.float32)
    return [case.id for case in cases], vectors, [case.to_json() for case in cases]


def scale_of(layout: Mapping[str, Any], schema: CaseSchema, location: str) -> QualityScale:
    """Return the quality scale from a collection's layout.

    Raise ``SchemaMismatchError`` if another schema made the collection, and ``StoreDamagedError``
    if the scale is missing.
    """
    differences = [
        f"{key} is {layout.get(key)} there, {expected} here"
        for key, expected in schema.layout().items()
        if layout.get(key) != expected
    ]
    if differences:
        raise SchemaMismatchError(
            f"The collection {schema.name!r} at {location} was built with another schema: "
            f"{'; '.join(differences)}. Open it with the schema that built it, or build it anew in "
            "another place."
        )
    try:
        return QualityScale(**layout["quality"])
    except (KeyError, TypeError) as error:
        problem = f"The collection {schema.name!r} at {location} has lost its quality scale."
        raise StoreDamagedError(f"{problem} Build it anew.") from error
