"""How a case is kept on a Qdrant server: as one JSON text, beside the metadata to filter by.

A server rounds whole numbers beyond 64 bits, may read the last digit of a long fraction otherwise
than it was written, and refuses what is nested deeply; a text comes back as it went.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from casewright.errors import InputError
from casewright.stores.engines.edge_payload import is_number
from casewright.stores.engines.engine import Where

#: Whole numbers that a server compares as such.
LEAST, MOST = -(2**63), 2**63 - 1


def server_payload(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is stored of a case's JSON-plain form.

    ``json`` is the whole; ``metadata`` has the texts, numbers and booleans of its metadata, and
    lists of them: what a condition may ask for, and a payload index may cover.
    """
    metadata: dict[str, Any] = {}
    for name, value in (case.get("metadata") or {}).items():
        if isinstance(value, list):
            metadata[name] = [_plain(item) for item in value if _is_plain(item)]
        elif _is_plain(value):
            metadata[name] = _plain(value)
    return {"json": json.dumps(case, ensure_ascii=False), "metadata": metadata}


def read_payload(stored: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the case's JSON-plain form that ``server_payload`` was given."""
    if stored is None or "json" not in stored:
        # Written before there was a text.
        return stored or {}
    return dict(json.loads(stored["json"]))


def check_numbers(where: Where | None) -> None:
    """Raise ``InputError`` for a condition on whole numbers that no server can compare."""
    for name, value in (where or {}).items():
        asked: Any = value.get("not") if isinstance(value, Mapping) else value
        items = asked if isinstance(asked, Sequence) and not isinstance(asked, str) else [asked]
        for item in items:
            if type(item) is int and not LEAST <= item <= MOST:
                raise InputError(
                    f"where asks for {name} = {item}. A Qdrant server compares whole numbers of 64 "
                    "bits only. Store such a number as a text."
                )


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, bool)) or is_number(value)


def _plain(value: Any) -> Any:
    """Return a value as a server can hold it; a large whole number only serves ranges."""
    if type(value) is int and not LEAST <= value <= MOST:
        return float(value)
    return value
