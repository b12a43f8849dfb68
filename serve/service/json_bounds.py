"""What bounds a request's JSON before it is parsed: how deep it is nested, and how much it holds.

A parser in C holds every other request for as long as it takes; looking here lets others work.
"""

from __future__ import annotations

import re
from json import detect_encoding

#: Lists and objects within each other.
DEPTH = 100
#: Texts, brackets and commas together: some three for every value. A large run has 50,000.
PARTS = 200_000
#: A text, closed or not; or what opens, ends or separates. No text is read twice.
_PARTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{\]},]', re.DOTALL)


def why_not_parsed(body: bytes) -> str:
    """Return why a body holds too much to be parsed; empty where it does not.

    What is no JSON is not told here.
    """
    if not detect_encoding(body).startswith("utf-8"):
        return "The JSON is not UTF-8. Send it as UTF-8."
    depth = 0
    for number, part in enumerate(_PARTS.finditer(body), 1):
        if number > PARTS:
            return f"The JSON has more than {PARTS:,} texts, brackets and commas. Send less."
        first = body[part.start()]
        if first in b"[{":
            depth += 1
            if depth > DEPTH:
                return f"The JSON is nested deeper than {DEPTH} levels. Send it flatter."
        elif first in b"]}":
            depth -= 1
    return ""
