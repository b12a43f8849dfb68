"""Functions declared by JSON Schema, as function-calling data declares them, as a toolbox."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from casewright.errors import ToolError
from casewright.finetune.instructions.readers.records import Unfit
from casewright.tools import Parameter, Source, Toolbox, ToolSpec, alias

#: Python's names for types, which some sets use for JSON Schema's.
_KINDS = {
    **dict.fromkeys(("string", "str"), "string"),
    **dict.fromkeys(("integer", "int"), "integer"),
    **dict.fromkeys(("float", "double", "number"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("array", "list", "tuple"), "array"),
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
    # ``userId`` names a thing, ``bid`` does not.
    if plain == "string" and (name.lower() == "id" or name.endswith(("_id", "Id", "ID"))):
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


def make_toolbox(tools: Iterable[ToolSpec]) -> Toolbox:
    """Return a toolbox.

    Raises:
        Unfit: Two tools have one name.
    """
    try:
        return Toolbox(tools)
    except ToolError as error:
        raise Unfit("two tools have one name") from error


def toolbox_of(functions: Iterable[Any]) -> Toolbox:
    """Return the toolbox of functions ``{name, description, parameters: {properties, required}}``.

    Raises:
        Unfit: A function cannot be declared as a tool.
    """
    return make_toolbox([_tool(function) for function in functions])


def _tool(function: Any) -> ToolSpec:
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise Unfit("a function has no name")
    schema = function.get("parameters") or {}
    properties = schema.get("properties") or {} if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not all(
        isinstance(declared, Mapping) for declared in properties.values()
    ):
        raise Unfit("a function's parameters are no JSON Schema")
    made = [
        parameter(
            str(name),
            str(declared.get("description", "")),
            str(declared.get("type", "")),
            required=name in (schema.get("required") or ()),
            items=str(_object(declared.get("items")).get("type", "")),
            choices=declared.get("enum") or (),
        )
        for name, declared in properties.items()
    ]
    fields = _object(_object(function.get("response")).get("properties"))
    results = [name for name in fields if isinstance(name, str) and name.isidentifier()]
    return tool(function["name"], str(function.get("description", "")), made, results)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
