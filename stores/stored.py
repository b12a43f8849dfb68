"""How a case is kept: its vector with its quality, its payload, and what of it may change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.stores.case import Case
from casewright.stores.engines.engine import Point
from casewright.stores.quality import QualityScale


def stored(
    cases: Sequence[Case], facets: NDArray[np.float32], scale: QualityScale
) -> tuple[list[str], NDArray[np.float32], list[dict[str, Any]]]:
    """Return the ids, vectors and payloads of cases.

    Args:
        cases: n cases.
        facets: Their facets' unit vectors, concatenated: array (n, sum of dimensions).
        scale: How the collection stores quality.
    """
    quality = np.array([scale.stored(case.quality) for case in cases]).reshape(-1, 1)
    vectors = np.concatenate([facets, quality], axis=1).astype(np.float32)
    return [case.id for case in cases], vectors, [case.to_json() for case in cases]


def read(point: Point) -> Case:
    """Return a stored case."""
    return Case.from_json(point.id, point.payload)


def solved(case: Case) -> tuple[Any, ...]:
    """Return what a case's id follows from, but for whose it is."""
    plain = case.to_json()
    return plain["problem"], plain["solution"]


def measured(case: Case) -> tuple[Any, ...]:
    """Return what may be new of a case that is there."""
    return case.quality, case.quality_by, case.result
