"""Reads and writes tools as JSON: toolbox files, and records in ``tools_extra`` of a query."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from pydantic_core import ErrorDetails

from casewright.errors import InputError, ToolError
from casewright.tools.alias import NAME, alias
from casewright.tools.parameter import Parameter, Source, sources_of
from casewright.tools.spec import NO_EVIDENCE, Toolbox, ToolExample, ToolSpec

#: The advice for each type of pydantic error.
_TYPE_ADVICE = {
    "missing": "Add it.",
    "string_type": "Write a text.",
    "bool_type": "Write true or false.",
    "list_type": "Write a list of texts.",
    "dict_type": "Write an object of names and descriptions.",
    "dataclass_type": "Write an object.",
    "model_type": "Write an object.",
}


class _ParameterRecord(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    description: str = ""
    kind: str | None = None
    sources: list[str] | None = None
    choices: list[str] = []
    required: bool = True

    def parameter(self, name: str) -> Parameter:
        default_kind = "string" if self.choices else "any"
        return Parameter(
            name,
            self.description,
            default_kind if self.kind is None else self.kind,
            sources_of(self.sources or (), name),
            tuple(self.choices),
            self.required,
        )


class _ToolRecord(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str
    parameters: dict[str, _ParameterRecord] = {}
    results: list[str] = []
    description: str = ""
    example: ToolExample | None = None

    @field_validator("parameters", mode="before")
    @classmethod
    def _texts_as_objects(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {n: {"description": p} if isinstance(p, str) else p for n, p in value.items()}


def tool_from_record(record: Any) -> ToolSpec:
    """Return the tool of a record ``{name, parameters, results, description, example}``.

    Each of the ``parameters`` is a description, or an object as in ``toolbox_from_file``. A plan
    can call the tool, but the tool cannot be executed. Raise ``InputError`` if the record is
    malformed.
    """
    try:
        return read_tool(record)
    except ToolError as error:
        raise InputError(f"tools_extra: {error}") from error


def read_tool(record: Any, *, exact: bool = False) -> ToolSpec:
    """Return the tool of a decoded JSON value; see ``tool_from_record``.

    With ``exact``, unknown fields of the record are refused, and a name that is an identifier is
    kept even if ``alias`` would change it (such as ``get_xml``). Raise ``ToolError`` if the record
    is malformed.
    """
    try:
        valid = _ToolRecord.model_validate(record)
    except ValidationError as error:
        raise ToolError(_validation_message(error.errors()[0])) from error
    if exact and (unknown := [name for name in record if name not in _ToolRecord.model_fields]):
        raise ToolError(_unknown_field_message(unknown[0], _ToolRecord))
    return ToolSpec(
        name=valid.name if exact and NAME.fullmatch(valid.name) else alias(valid.name),
        description=valid.description,
        parameters=tuple(entry.parameter(name) for name, entry in valid.parameters.items()),
        results=tuple(valid.results),
        example=valid.example,
    )


def _validation_message(error: ErrorDetails) -> str:
    path = list(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        problem = _unknown_field_message(path.pop(), _ParameterRecord)
    elif path[:1] == ["parameters"] and len(path) == 2:
        problem = "The value is neither a text nor an object. Write a description."
    else:
        problem = f"{error['msg']}. {_TYPE_ADVICE.get(error['type'], '')}".rstrip()
    return f"{'.'.join(path) or 'the record'}: {problem}"


def _unknown_field_message(name: str, model: type[BaseModel]) -> str:
    if similar := get_close_matches(name, model.model_fields, 1):
        return f"There is no field {name!r}. Did you mean {similar[0]}?"
    return f"There is no field {name!r}. Fields are {', '.join(model.model_fields)}."


def toolbox_from_file(path: Path) -> Toolbox:
    """Return the toolbox of a JSON file; its tools can be planned, but not executed.

    The file has a list of tools, or ``{"tools": [...]}``. A tool is declared as in the field
    ``tools_extra`` of an annotated query::

        {"name": "find_room", "description": "Finds free rooms.", "results": ["room_id"],
         "parameters": {
            "town": "Where.",
            "beds": {"description": "How many.", "kind": "integer", "required": false},
            "view": {"choices": ["sea", "street"]},
            "guest_id": {"sources": ["context"]}},
         "example": {"query": "a room in Kiel", "plan": "s1 = find_room(town=\\"Kiel\\")"}}

    A parameter is a description, or an object with optional fields (defaults in brackets):
    ``description``; ``kind``, a JSON Schema type (``any``, or ``string`` if there are choices);
    ``sources``, the allowed sources of the argument (see ``Parameter``); ``choices``, the allowed
    texts; ``required`` (true). The tool ``no_evidence`` is added if it is missing.

    Raises:
        InputError: The file cannot be read, or a declaration is malformed; the message names the
            file, the tool, the parameter and the correction.
    """
    tools = []
    for number, record in enumerate(_read_records(path), 1):
        try:
            tools.append(_listed_tool(record))
        except ToolError as error:
            name = record.get("name") if isinstance(record, dict) else None
            shown_name = f" ({name})" if isinstance(name, str) else ""
            raise InputError(f"{path}: tool {number}{shown_name}: {error}") from error
    try:
        return Toolbox(tools)
    except ToolError as error:
        raise InputError(f"{path}: {error}") from error


def _read_records(path: Path) -> Sequence[Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_unique_keys)
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{path} has half of a surrogate pair. Write whole characters.") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(f"{path} cannot be read: {reason}. Give a JSON file of tools.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON with tools: {error}") from error
    records = content.get("tools") if isinstance(content, dict) else content
    if not isinstance(records, list) or not records:
        raise InputError(
            f'{path} has no tools. Write a list of tools, [{{"name": …}}, …], or {{"tools": […]}}.'
        )
    return records


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Of two parameters with the same name, ``json.loads`` would keep only the last one.
    names = [name for name, _ in pairs]
    if repeated_names := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"One object has the name {', '.join(repeated_names)} twice. Rename one of them."
        )
    return dict(pairs)


def _listed_tool(record: Any) -> ToolSpec:
    """Return the tool of a file's record; the record may declare ``no_evidence``."""
    tool = read_tool(record, exact=True)
    if tool.name != NO_EVIDENCE.name:
        return tool
    if tool.parameters:
        raise ToolError("no_evidence looks nothing up. Leave its parameters out.")
    return replace(tool, run=NO_EVIDENCE.run)


def toolbox_to_records(toolbox: Toolbox) -> list[dict[str, Any]]:
    """Return records from which ``toolbox_from_file`` makes a toolbox of the same fingerprint."""
    tools = list(toolbox)
    # A standard ``no_evidence`` at the end is left out, since ``Toolbox`` adds it.
    if Toolbox(tools[-1:]).fingerprint() == Toolbox([NO_EVIDENCE]).fingerprint():
        tools.pop()
    return [_tool_record(tool) for tool in tools]


def _tool_record(tool: ToolSpec) -> dict[str, Any]:
    example = tool.example
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": {
            parameter.name: {
                "description": parameter.description,
                "kind": parameter.kind,
                "sources": [source.value for source in Source if source in parameter.sources],
                **({"choices": list(parameter.choices)} if parameter.choices else {}),
                "required": parameter.required,
            }
            for parameter in tool.parameters
        },
        "results": list(tool.results),
        **({"example": {"query": example.query, "plan": example.plan}} if example else {}),
    }
