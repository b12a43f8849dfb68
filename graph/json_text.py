"""JSON as text that UTF-8 can hold, whatever a tool returned."""

from __future__ import annotations

import json
import re
from typing import Any

# Half of a surrogate pair: JSON can hold it, UTF-8 cannot.
_SURROGATE = re.compile("[\ud800-\udfff]")


def json_text(value: Any, **form: Any) -> str:
    """Return a value as JSON, unescaped but for halves of surrogate pairs.

    Args:
        value: JSON-plain.
        form: What ``json.dumps`` takes beside it: ``indent``, ``separators``.

    Raises:
        TypeError, ValueError, RecursionError: As ``json.dumps`` does.
    """
    # A surrogate can stand in a text alone, where its escape means the same.
    text = json.dumps(value, ensure_ascii=False, **form)
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
