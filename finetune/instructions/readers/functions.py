"""Functions declared by JSON Schema, as function-calling data declares them, as a toolbox."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from casewright.errors import ToolError
from casewright.finetune.instructions.readers.refusal import Unfit
from casewright.tools import Parameter, Source, Toolbox, ToolSpec, alias

#: Python's names for types, which some sets use for JSON Schema's.
_KINDS = {
    "string": "string",
    "str": "string",
    "integer": "integer",
    "int": "integer",
    "float": "number",
    "double": "number",
    "number": "number",
    "boolean": "boolean",
    "bool": "boolean",
    "array": "array",
    "list": "array",
    "tuple": "array",
}
_REFERENCES = frozenset({Source.CONTEXT, Source.STEP})
_TEXT = frozenset({Source.LITERAL, Source.SPAN, Source.QUESTION})
_BY_KIND = {
    "string": _TEXT,
    "integer": frozenset({Source.NUMBER}),
    "number": frozenset({Source.NUMBER}),
    "boolean": frozenset({Source.BOOLEAN}),
}


def parameter(
    name: str, description: str, type_: str, *, required: bool, items: str = "", choices: Any = ()
) -> Parameter:
    """Return a parameter of function-calling data.

    Its values may be written, since these sets have no context; an identifier only in words of the
    question (``span``), so that none can be made up.

    Args:
        name: Its name.
        description: For the prompt.
        type_: Its type by JSON Schema's or Python's name.
        required: Whether a call must give it.
        items: The type of its items, where it is an array.
        choices: Its enumeration; only texts are kept.

    Raises:
        Unfit: The name is none that a plan can write.
    """
    kind = _KINDS.get(type_, "any")
    texts = tuple(choices) if all(isinstance(choice, str) for choice in choices or ()) else ()
    plain = _KINDS.get(items, "any") if kind == "array" else kind
    sources = _BY_KIND.get(plain, _TEXT | {Source.NUMBER, Source.BOOLEAN}) | _REFERENCES
    if name.lower().endswith(("_id", "id")) and plain == "string" and _names_thing(name):
        sources = _REFERENCES | {Source.SPAN}
    try:
        return Parameter(
            name,
            " ".join(description.split()),
            kind,
            frozenset() if texts else sources,
            tuple(text for text in texts if text),
            required,
        )
    except ToolError as error:
        raise Unfit("a parameter's name is no identifier") from error


def toolbox_of(functions: Iterable[Any]) -> Toolbox:
    """Return the toolbox of functions ``{name, description, parameters: {properties, required}}``.

    Raises:
        Unfit: A function cannot be declared as a tool.
    """
    return make_toolbox([_tool(function) for function in functions])


def make_toolbox(tools: Iterable[ToolSpec]) -> Toolbox:
    """Return a toolbox.

    Raises:
        Unfit: Two tools have one name.
    """
    try:
        return Toolbox(tools)
    except ToolError as error:
        raise Unfit("two tools have one name") from error


def _tool(function: Any) -> ToolSpec:
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise Unfit("a function has no name")
    schema = function.get("parameters") or {}
    properties = schema.get("properties") or {} if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        raise Unfit("a function's parameters are no JSON Schema")
    required = schema.get("required") or ()
    made = []
    for name, declared in properties.items():
        if not isinstance(declared, Mapping):
            raise Unfit("a function's parameters are no JSON Schema")
        items = declared.get("items")
        made.append(
            parameter(
                str(name),
                str(declared.get("description", "")),
                str(declared.get("type", "")),
                required=name in required,
                items=str(items.get("type", "")) if isinstance(items, Mapping) else "",
                choices=declared.get("enum") or (),
            )
        )
    return tool(function["name"], str(function.get("description", "")), made, _results(function))


def tool(
    name: str, description: str, parameters: Iterable[Parameter], results: Iterable[str]
) -> ToolSpec:
    """Return a tool to plan with; its name is aliased where a plan cannot write it.

    Raises:
        Unfit: It has two parameters of one name, or a result that a plan cannot write.
    """
    text = " ".join(description.split())
    try:
        return ToolSpec(alias(name), text, tuple(parameters), tuple(results) or ("evidence",))
    except ToolError as error:
        raise Unfit("a tool's parameters or results have no usable names") from error


def _results(function: Mapping[str, Any]) -> list[str]:
    declared = function.get("response")
    fields = declared.get("properties") if isinstance(declared, Mapping) else None
    names = list(fields) if isinstance(fields, Mapping) else []
    return [name for name in names if isinstance(name, str) and name.isidentifier()]


def _names_thing(name: str) -> bool:
    """Say whether a name that ends in id is an identifier's: ``userId``, not ``bid``."""
    return name.lower() == "id" or name.endswith(("_id", "Id", "ID"))
