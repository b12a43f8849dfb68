"""Whatever a tool returns becomes rows with the fields that it declared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from casewright.errors import ToolError
from casewright.tools.plain import plain
from casewright.tools.spec import ToolSpec

#: A row may say where it comes from; no plan can refer to it.
SOURCE_FIELD = "source"


def rows(tool: ToolSpec, returned: Any) -> list[dict[str, Any]]:
    """Turn a tool's return value into rows.

    ``None`` and empty values are no rows; a mapping, dataclass or pydantic model is one; a list is
    one a member; text, or any other value, fills the only field of a tool that declares one.
    Fields that were not declared are left out, declared ones that are missing are null. Dates,
    decimals and the like become text; see ``plain``.

    Raises:
        ToolError: The value has no fields where several were declared, or is not JSON-plain.
    """
    if not tool.results:
        return []
    if isinstance(returned, str) and returned and len(tool.results) > 1:
        returned = _decoded(tool, returned)
    # Only these can be empty: 0 and False are values, and an array has no truth value.
    if returned is None or (isinstance(returned, (str, Mapping)) and not returned):
        return []
    members = returned if isinstance(returned, (list, tuple)) else [returned]
    try:
        made = plain([_row(tool, member) for member in members])
        text = json.dumps(made, allow_nan=False, ensure_ascii=False)
        # Half a surrogate pair is no text that a checkpointer could keep.
        kept: list[dict[str, Any]] = json.loads(
            text.encode("utf-8", "replace"), parse_int=whole_number
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(
            f"Tool {tool.name!r} returned what JSON cannot hold: {error}. "
            "Return text, numbers, lists and mappings."
        ) from error
    return kept


def whole_number(digits: str) -> int:
    """Read a whole number of JSON, of at most 64 bits: checkpointers keep no longer ones.

    Raises:
        ValueError: It is longer.
    """
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
                f"Tool {tool.name!r} returned the fields {sorted(map(str, member))[:10]}, none of "
                f"those that it declares: {list(tool.results)}. Declare what it returns."
            )
        if isinstance(member.get(SOURCE_FIELD), str):
            row[SOURCE_FIELD] = member[SOURCE_FIELD]
        return row
    if len(tool.results) == 1:
        return {tool.results[0]: member}
    raise ToolError(
        f"Tool {tool.name!r} returned a {type(member).__name__}; it declares the fields "
        f"{list(tool.results)}. Return mappings that have them."
    )


def _decoded(tool: ToolSpec, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ToolError(
            f"Tool {tool.name!r} returned text that is no JSON; it declares the fields "
            f"{list(tool.results)}. Return mappings, or JSON."
        ) from error


def evidence_text(row: Mapping[str, Any], results: Sequence[str]) -> str:
    """Return a row as text for the generator: one field's value, or ``field: value`` pairs."""
    shown = {field: row[field] for field in results if row.get(field) is not None}
    if len(shown) == 1:
        return _plain(next(iter(shown.values())))
    return "; ".join(f"{field}: {_plain(value)}" for field, value in shown.items())


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
