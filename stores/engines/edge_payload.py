"""How a case is kept in Qdrant Edge: as one JSON text, beside what conditions may ask for.

Its id and its checksums are there too. Edge itself would take ``True`` in a condition for 1, round
large whole numbers, and accept a payload nested so deeply that it cannot be read again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.stores.engines.case_sums import SUMS, check_sums, sums_of


def payload(case: Mapping[str, Any], id_: str, vector: NDArray[np.float32]) -> dict[str, Any]:
    """Return what is stored of a case's JSON-plain form, and of its id and vector.

    ``tags`` holds a text for each value of its metadata: as texts, whole numbers of any size are
    told apart, and a field's name is no path. ``numbers`` holds the finite numbers, for ranges.
    """
    metadata = case.get("metadata") or {}
    text = json.dumps(case, ensure_ascii=False)
    tags = [
        tag(name, value)
        for name, values in _values(metadata)
        for value in values
        if isinstance(value, (str, int))
    ]
    return {
        "id": id_,
        SUMS: sums_of(id_, [text, *tags], vector),
        "json": text,
        "tags": tags,
        "numbers": [
            {"field": name, "value": float(value)}
            for name, values in _values(metadata)
            for value in values
            if is_number(value)
        ],
    }


def read_payload(
    stored: Mapping[str, Any], id_: str, vector: NDArray[np.float32] | None
) -> Mapping[str, Any]:
    """Return the case's JSON-plain form that ``payload`` was given.

    Raises:
        ValueError: It is not as it was written; ``KeyError`` or ``TypeError`` where it is no case.
    """
    check_sums(stored, id_, [stored["json"], *stored["tags"]], vector)
    case: Mapping[str, Any] = json.loads(stored["json"])
    return case


def tag(name: str, value: Any) -> str:
    """Return the text that a field's value is asked for by."""
    return json.dumps([name, value])


def is_number(value: Any) -> bool:
    """Say whether a range may be asked of a value: a finite number, and no boolean."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _values(metadata: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    for name, value in metadata.items():
        yield name, value if isinstance(value, list) else [value]
