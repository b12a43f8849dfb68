"""Converts a tool's return value to rows that have the declared fields."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import date, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from casewright.errors import ToolError
from casewright.tools.spec import ToolSpec

#: The field with a row's provenance, shown with the evidence; no plan can refer to it.
_SOURCE_FIELD = "source"


def plain(value: Any) -> Any:
    """Return a value with dates, decimals and similar objects replaced by texts.

    A ``date``, ``datetime`` or ``time`` becomes its ISO text, a ``Decimal``, ``UUID`` or ``Path``
    its ``str``, and a member of an ``Enum`` its value, also in lists and as keys or values of
    mappings. Any other value stays as it is, even if ``json.dumps`` refuses it. Raise
    ``RecursionError`` if the value contains itself.
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


def rows(tool: ToolSpec, returned: Any) -> list[dict[str, Any]]:
    """Return a tool's return value as rows.

    A mapping, dataclass or pydantic model is one row. A list or tuple has a row for each member.
    Any other value becomes the value of the only declared field; if the tool declares several
    fields, a text is read as JSON. There are no rows for ``None``, for an empty text, list or
    mapping, or if the tool declares no fields. Undeclared fields are left out, except ``source``;
    missing declared fields are null. Dates, decimals and similar objects become texts. Raise
    ``ToolError`` if JSON cannot represent the value, if no declared field of a mapping has a value,
    or if the tool declares several fields and a member is neither a mapping nor JSON.
    """
    if not tool.results:
        return []
    if isinstance(returned, str) and returned and len(tool.results) > 1:
        returned = parsed_json(tool, returned, "Return mappings, or JSON.")
    # ``not returned`` would be wrong: 0 and False are values, and an array may have no truth value.
    if returned is None or (isinstance(returned, (str, Mapping)) and not returned):
        return []
    members = returned if isinstance(returned, (list, tuple)) else [returned]
    try:
        text = json.dumps(
            plain([_row(tool, member) for member in members]), allow_nan=False, ensure_ascii=False
        )
        # Lone surrogates are replaced, since no checkpointer can store them.
        result: list[dict[str, Any]] = json.loads(
            text.encode("utf-8", "replace"), parse_int=whole_number
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            f"Tool {tool.name!r} returned a value that JSON cannot represent: {error}. "
            "Return text, numbers, lists and mappings."
        ) from error
    return result


def whole_number(digits: str) -> int:
    """Return the value of a JSON integer; raise ``ValueError`` if it has more than 64 bits.

    Checkpointers cannot store larger integers.
    """
    # A text of more than a sign and 19 digits is not converted, since it is too large anyway.
    value = int(digits) if len(digits) <= 20 else 2**64
    if not -(2**63) <= value < 2**63:
        raise ValueError("a whole number has more than 64 bits; write it as text")
    return value


def _row(tool: ToolSpec, member: Any) -> dict[str, Any]:
    if hasattr(member, "model_dump"):
        member = member.model_dump(mode="json")
    elif is_dataclass(member) and not isinstance(member, type):
        member = asdict(member)
    if isinstance(member, Mapping):
        row = {field: member.get(field) for field in tool.results}
        if all(value is None for value in row.values()):
            raise ToolError(
                f"Tool {tool.name!r} returned the fields {sorted(map(str, member))[:10]}; none of "
                f"its declared fields {list(tool.results)} has a value. Declare what it returns."
            )
        if isinstance(member.get(_SOURCE_FIELD), str):
            row[_SOURCE_FIELD] = member[_SOURCE_FIELD]
        return row
    if len(tool.results) == 1:
        return {tool.results[0]: member}
    raise ToolError(
        f"Tool {tool.name!r} returned a {type(member).__name__}; it declares the fields "
        f"{list(tool.results)}. Return mappings that have them."
    )


def parsed_json(tool: ToolSpec, text: str, advice: str) -> Any:
    """Return the value of JSON text from a tool; raise ``ToolError`` with ``advice`` if invalid."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ToolError(
            f"Tool {tool.name!r} returned text that is not JSON; it declares the fields "
            f"{list(tool.results)}. {advice}"
        ) from error


def evidence_text(row: Mapping[str, Any], fields: Sequence[str]) -> str:
    """Return a row's declared fields as ``field: value; …``; a single value without its field."""
    texts = {
        field: row[field]
        if isinstance(row[field], str)
        else json.dumps(row[field], ensure_ascii=False)
        for field in fields
        if row.get(field) is not None
    }
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{field}: {text}" for field, text in texts.items())
