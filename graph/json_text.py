"""JSON text that UTF-8 can encode, even if a tool's result contains lone surrogates."""

from __future__ import annotations

import json
import re
from typing import Any

# A lone surrogate is half of a pair. JSON text can contain it; UTF-8 cannot encode it.
_SURROGATE = re.compile("[\ud800-\udfff]")


def json_text(value: Any, **options: Any) -> str:
    """Return a value as JSON; of non-ASCII characters, only lone surrogates are escaped."""
    # Lone surrogates occur only in JSON strings, where an escape means the same as the character.
    text = json.dumps(value, ensure_ascii=False, **options)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
