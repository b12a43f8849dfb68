"""Values that JSON does not know, and that have one text: dates, decimals, enumerations, paths."""

from __future__ import annotations

from datetime import date, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID


def plain(value: Any) -> Any:
    """Return a value with the text of each such value in it; all else stays as it is.

    A ``date``, ``datetime`` or ``time`` becomes its ISO text, a ``Decimal``, ``UUID`` or ``Path``
    its ``str``, a member of an ``Enum`` its value: by itself, in lists, and in mappings as a value
    or a key. What JSON cannot hold otherwise is left for ``json.dumps`` to refuse.

    Raises:
        RecursionError: The value holds itself.
    """
    if isinstance(value, dict):
        return {plain(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return plain(value.value)
    # A datetime is a date.
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (Decimal, UUID, PurePath)):
        return str(value)
    return value
