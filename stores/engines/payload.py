"""The stored form of a case: one JSON text, and fields for conditions on its metadata.

Qdrant Edge and a Qdrant server return a text unchanged. If the case were stored as fields, Edge
would treat ``True`` in a condition as 1, round large integers, and accept a payload that is nested
too deeply to be read again. A server would round integers beyond 64 bits and the last digit of long
fractions, and refuse deep nesting.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores.engines.checksums import CHECKSUMS, case_checksums, check_case
from casewright.stores.engines.engine import Where

#: The range of integers that a server compares exactly.
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1
#: The field of Edge's payload with the tags: metadata fields with their values, for conditions.
TAGS = "tags"


def edge_payload(case: Mapping[str, Any], id_: str, vector: NDArray[np.float32]) -> dict[str, Any]:
    """Return Edge's payload for a case's JSON form, with its id and checksums.

    ``tags`` has the ``tag`` of each text, integer and boolean of the metadata. In plain fields,
    Edge would round large integers and read names as paths. ``numbers`` is for ranges.
    """
    text = json.dumps(case, ensure_ascii=False)
    fields = [
        (name, item)
        for name, value in (case.get("metadata") or {}).items()
        for item in (value if isinstance(value, list) else [value])
    ]
    tags = [tag(name, value) for name, value in fields if isinstance(value, (str, int))]
    numbers = [(name, float(value)) for name, value in fields if is_number(value)]
    return {
        "id": id_,
        CHECKSUMS: case_checksums(id_, [text, *tags], vector),
        "json": text,
        TAGS: tags,
        "numbers": [{"field": name, "value": value} for name, value in numbers],
    }


def read_edge_payload(
    payload: Mapping[str, Any], id_: str, vector: NDArray[np.float32] | None
) -> Mapping[str, Any]:
    """Return the case in an Edge payload; damage raises ValueError, KeyError or TypeError."""
    check_case(payload, id_, [payload["json"], *payload[TAGS]], vector)
    return dict(json.loads(payload["json"]))


def server_payload(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return a server's payload for a case's JSON form.

    ``json`` has the whole case; ``metadata`` has the texts, numbers and booleans of the case's
    metadata, and lists of these, for conditions and payload indexes.
    """
    metadata: dict[str, Any] = {}
    for name, value in (case.get("metadata") or {}).items():
        if isinstance(value, list):
            metadata[name] = [_as_comparable(item) for item in value if _is_comparable(item)]
        elif _is_comparable(value):
            metadata[name] = _as_comparable(value)
    return {"json": json.dumps(case, ensure_ascii=False), "metadata": metadata}


def read_server_payload(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON form of a case from a payload of ``server_payload``."""
    # Earlier versions of this package stored the case itself as the payload.
    return dict(json.loads(payload["json"])) if "json" in payload else payload


def check_numbers(where: Where | None) -> None:
    """Raise ``InputError`` for a condition on an integer that a server cannot compare."""
    for name, condition in (where or {}).items():
        value: Any = condition.get("not") if isinstance(condition, Mapping) else condition
        items = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        for item in items:
            if type(item) is int and not MIN_INTEGER <= item <= MAX_INTEGER:
                raise InputError(
                    f"where asks for {name} = {item}. A Qdrant server compares whole numbers of 64 "
                    "bits only. Store such a number as a text."
                )


def tag(name: str, value: Any) -> str:
    """Return a tag: the text that represents a field and its value in Edge."""
    return json.dumps([name, value])


def is_number(value: Any) -> bool:
    """Return ``True`` for a finite number that is not a boolean; ranges apply to these numbers."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _is_comparable(value: Any) -> bool:
    return isinstance(value, (str, bool)) or is_number(value)


def _as_comparable(value: Any) -> Any:
    """Return a value as a server can store it: an integer beyond 64 bits becomes a float."""
    is_large = type(value) is int and not MIN_INTEGER <= value <= MAX_INTEGER
    return float(value) if is_large else value
