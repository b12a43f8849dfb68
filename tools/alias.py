"""Reversible, collision-free identifiers for tools whose names are not identifiers."""

from __future__ import annotations

import re

#: An identifier: a valid name of a tool, a parameter or a field.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPE = re.compile(r"_x([0-9a-f]+)_")


def alias(name: str) -> str:
    """Return an identifier for a tool's name; most identifiers are returned unchanged.

    Every character that an identifier cannot hold becomes ``_xHEX_``, as does every underscore
    before an ``x``, so that every ``_xHEX_`` in an alias is an escape.
    """
    if NAME.fullmatch(name) and "_x" not in name:
        return name
    parts = []
    for index, character in enumerate(name):
        is_allowed = character.isascii() and (character.isalnum() or character == "_")
        is_leading_digit = index == 0 and character.isdigit()
        must_escape = not is_allowed or is_leading_digit or name.startswith("_x", index)
        parts.append(f"_x{ord(character):x}_" if must_escape else character)
    return "".join(parts) or "_x_"


def original(name: str) -> str:
    """Return the name whose ``alias`` is this identifier."""
    if name == "_x_":
        return ""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name)
