"""JSON as text that UTF-8 can hold, for any result of a tool."""

from __future__ import annotations

import json
import re
from typing import Any

# Half of a surrogate pair: JSON can hold it, UTF-8 cannot.
_SURROGATE = re.compile("[\ud800-\udfff]")


def json_text(value: Any, **options: Any) -> str:
    """Return a value as JSON, unescaped except halves of surrogate pairs; see ``json.dumps``."""
    # A surrogate can stand in a text alone, where its escape means the same.
    text = json.dumps(value, ensure_ascii=False, **options)
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)
