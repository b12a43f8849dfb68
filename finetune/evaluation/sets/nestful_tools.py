"""NESTFUL's tool specifications as tools of the plan language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from casewright.errors import ToolError
from casewright.finetune.evaluation.sets.converted import ConversionError
from casewright.tools import Parameter, Source, ToolSpec, alias

#: Where specifications keep their parameters.
_PARAMETERS = ("query_parameters", "path_parameters", "parameters", "arguments")
_CHOICES = ("enum", "allowed_values", "possible_values")
_KINDS = {
    "string": "string",
    "str": "string",
    "enum": "string",
    "number": "number",
    "float": "number",
    "int or float": "number",
    "integer": "integer",
    "int": "integer",
    "boolean": "boolean",
    "bool": "boolean",
    "array": "array",
    "list": "array",
}
#: Plain values stand in the question or not, as people wrote them.
_SOURCES = {
    "string": {Source.LITERAL},
    "number": {Source.NUMBER},
    "integer": {Source.NUMBER},
    "boolean": {Source.BOOLEAN},
}
_ANY = {Source.LITERAL, Source.NUMBER, Source.BOOLEAN}


def tool_of(specification: Mapping[str, Any], *, required: bool = False) -> ToolSpec:
    """Return the tool of a specification of any subset.

    Names become identifiers by ``alias``. Fields of an object that a tool returns are fields of its
    result, named by their path (``location.name``); what lists hold has no name.

    Args:
        specification: Of one tool.
        required: Whether parameters are required of which nothing says so.

    Raises:
        ConversionError: It is no specification.
    """
    try:
        parameters = []
        for key in _PARAMETERS:
            declared, named = _declared(specification.get(key))
            for name, one in declared.items():
                needed = one.get("required", required if named is None else name in named)
                parameters.append(_parameter(name, one, required=bool(needed)))
        returned = specification.get("output_parameters", specification.get("output_parameter"))
        fields = dict.fromkeys(_fields(_declared(returned)[0]))
        return ToolSpec(
            alias(str(specification["name"])),
            str(specification.get("description", "")),
            tuple(parameters),
            tuple(alias(field) for field in fields),
        )
    except (KeyError, TypeError, AttributeError, ToolError) as error:
        raise ConversionError("a tool's specification has another form") from error


def _declared(given: Any) -> tuple[Mapping[str, Any], Sequence[str] | None]:
    """Return declarations by name, and which are required where they are a JSON Schema."""
    if not given:
        return {}, None
    inner = given.get("properties")
    # A parameter may itself be called properties; its declaration then describes it.
    if isinstance(inner, Mapping) and all(isinstance(one, Mapping) for one in inner.values()):
        return inner, given.get("required", ())
    return given, None


def _parameter(name: str, declared: Mapping[str, Any], *, required: bool) -> Parameter:
    told = str(declared.get("type", "")).lower()
    first = told.removeprefix("typing.").partition("[")[0].strip()
    kind = _KINDS.get(first, "any")
    choices = _choices(declared)
    if choices and first in ("", "string", "str", "enum"):
        kind = "string"
        sources = {Source.STEP}
    else:
        choices = ()
        sources = {*_SOURCES.get(kind, _ANY), Source.STEP}
    return Parameter(
        alias(name),
        str(declared.get("description", "")),
        kind,
        frozenset(sources),
        choices,
        required,
    )


def _choices(declared: Mapping[str, Any]) -> tuple[str, ...]:
    for key in _CHOICES:
        values = declared.get(key)
        if isinstance(values, list) and values and all(isinstance(v, str) for v in values):
            return tuple(dict.fromkeys(values))
    return ()


def _fields(declared: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the paths of the plain fields, and of objects and lists as wholes."""
    for name, field in declared.items():
        yield path + name
        inner = field.get("properties") if isinstance(field, Mapping) else None
        if isinstance(inner, Mapping):
            yield from _fields(inner, f"{path}{name}.")
