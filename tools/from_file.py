"""A toolbox as a JSON file: what a team plans with, and trains on, without writing Python."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from casewright.errors import InputError, ToolError
from casewright.tools.from_record import read_tool
from casewright.tools.parameter import Parameter
from casewright.tools.source import Source
from casewright.tools.spec import NO_EVIDENCE, ToolSpec
from casewright.tools.toolbox import Toolbox


def toolbox_from_file(path: Path) -> Toolbox:
    """Read a toolbox to plan with from a JSON file.

    The file holds a list of tools, or ``{"tools": [...]}``. A tool is declared as in the plan
    language's ``tools_extra``::

        {"name": "find_room", "description": "Finds free rooms.", "results": ["room_id"],
         "parameters": {
            "town": "Where.",
            "beds": {"description": "How many.", "kind": "integer", "required": false},
            "view": {"choices": ["sea", "street"]},
            "guest_id": {"sources": ["context"]}},
         "example": {"query": "a room in Kiel", "plan": "s1 = find_room(town=\\"Kiel\\")"}}

    A parameter is its description, or an object whose fields are all optional: ``description``;
    ``kind``, its JSON Schema type (``any``); ``sources``, where its argument may come from (by
    name and kind); ``choices``, the texts that may be written; ``required`` (true).
    ``no_evidence`` need not be there.

    Raises:
        InputError: The file cannot be read, or declares a tool wrongly; names the file, the tool,
            the parameter and the mend.
    """
    tools = []
    for number, record in enumerate(_records(path), 1):
        named = record.get("name") if isinstance(record, dict) else None
        place = f"{path}: tool {number}" + (f" ({named})" if isinstance(named, str) else "")
        try:
            tools.append(_tool(record))
        except ToolError as error:
            raise InputError(f"{place}: {error}") from error
    try:
        return Toolbox(tools)
    except ToolError as error:
        raise InputError(f"{path}: {error}") from error


def toolbox_to_records(toolbox: Toolbox) -> list[dict[str, Any]]:
    """Return a toolbox as ``toolbox_from_file`` reads it, with nothing left to defaults.

    What is read from the records again has the same fingerprint: a planner sees no difference.
    """
    tools = list(toolbox)
    if _alike(tools[-1], NO_EVIDENCE):
        tools.pop()
    return [_record(tool) for tool in tools]


def _records(path: Path) -> Sequence[Any]:
    try:
        told = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_once)
        json.dumps(told, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{path} holds half of a surrogate pair. Write whole characters."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise InputError(f"{path} cannot be read: {reason}. Give a JSON file of tools.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON of tools: {error}") from error
    records = told.get("tools") if isinstance(told, dict) else told
    if not isinstance(records, list) or not records:
        raise InputError(
            f'{path} holds no tools. Write a list of tools, [{{"name": …}}, …], or '
            '{"tools": […]}.'
        )
    return records


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # JSON's reader would keep the last of two parameters of one name.
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"One object has the name {', '.join(twice)} twice. Rename one of them.")
    return made


def _tool(record: Any) -> ToolSpec:
    tool = read_tool(record, exact=True)
    if tool.name != NO_EVIDENCE.name:
        return tool
    if tool.parameters:
        raise ToolError("no_evidence looks nothing up. Leave its parameters out.")
    return replace(tool, run=NO_EVIDENCE.run)


def _alike(tool: ToolSpec, other: ToolSpec) -> bool:
    return Toolbox([tool]).fingerprint() == Toolbox([other]).fingerprint()


def _record(tool: ToolSpec) -> dict[str, Any]:
    example = tool.example
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": {parameter.name: _parameter(parameter) for parameter in tool.parameters},
        "results": list(tool.results),
        **({"example": {"query": example.query, "plan": example.plan}} if example else {}),
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "description": parameter.description,
        "kind": parameter.kind,
        "sources": [source.value for source in Source if source in parameter.sources],
        **({"choices": list(parameter.choices)} if parameter.choices else {}),
        "required": parameter.required,
    }
