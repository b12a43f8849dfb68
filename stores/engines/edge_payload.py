"""How a case is kept in Qdrant Edge: as one JSON text, beside what conditions may ask for.

Edge itself would take ``True`` in a condition for 1, round large whole numbers, and accept a
payload nested so deeply that it cannot be read again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any


def payload(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is stored of a case's JSON-plain form.

    ``tags`` holds a text for each value of its metadata: as texts, whole numbers of any size are
    told apart, and a field's name is no path. ``numbers`` holds the finite numbers, for ranges.
    """
    metadata = case.get("metadata") or {}
    return {
        "json": json.dumps(case, ensure_ascii=False),
        "tags": [
            tag(name, value)
            for name, values in _values(metadata)
            for value in values
            if isinstance(value, (str, int))
        ],
        "numbers": [
            {"field": name, "value": float(value)}
            for name, values in _values(metadata)
            for value in values
            if is_number(value)
        ],
    }


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
