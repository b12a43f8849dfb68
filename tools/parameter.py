"""A parameter of a tool: its type, and the sources that its argument may come from."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from casewright.errors import ToolError
from casewright.tools.alias import NAME

#: Python types by JSON Schema type.
_TYPES: Mapping[str, Any] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "array": list,
}
KINDS = (*_TYPES, "any")


class Source(StrEnum):
    """An origin that an argument's value may have."""

    LITERAL = "literal"  # a text that the plan writes
    SPAN = "span"  # adjacent words of the question, which the plan copies
    QUESTION = "question"  # the whole question
    CONTEXT = "context"  # a field of the request's context
    STEP = "step"  # the result of an earlier step
    NUMBER = "number"  # a number that the plan writes
    BOOLEAN = "boolean"  # true or false, written by the plan


#: Default sources of an id: a plan must look the id up, and cannot write it.
_ID_SOURCES = frozenset({Source.CONTEXT, Source.STEP})
_TEXT_SOURCES = _ID_SOURCES | {Source.LITERAL, Source.SPAN, Source.QUESTION}
#: Default sources by kind. Without declared sources, an item of an array, or a value of the kind
#: ``any``, may be a text or a number, but not a boolean.
_DEFAULT_SOURCES = {
    "string": _TEXT_SOURCES,
    "number": _ID_SOURCES | {Source.NUMBER},
    "integer": _ID_SOURCES | {Source.NUMBER},
    "boolean": _ID_SOURCES | {Source.BOOLEAN},
    "array": _TEXT_SOURCES | {Source.NUMBER},
    "any": _TEXT_SOURCES | {Source.NUMBER},
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a tool.

    Attributes:
        name: A Python identifier of ASCII characters.
        description: The description in the planner's prompt.
        kind: JSON Schema type, or ``any``.
        sources: Allowed sources of the argument. By default: none if there are ``choices``, else
            context and step if the name ends with ``_id``, else all sources that suit the kind.
        choices: Values of an enumeration, which a plan may write even if ``sources`` lacks literal.
        required: True if a plan must give an argument for it.
    """

    name: str
    description: str = ""
    kind: str = "any"
    sources: frozenset[Source] = frozenset()
    choices: tuple[str, ...] = ()
    required: bool = True

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ToolError(
                f"A parameter is named {self.name!r}. Names are letters, digits and underscores, "
                "and do not start with a digit."
            )
        if self.kind not in KINDS:
            raise ToolError(f"Parameter {self.name!r} has kind {self.kind!r}. Use one of {KINDS}.")
        if not self.sources and not self.choices:
            is_id = self.name.endswith("_id")
            sources = _ID_SOURCES if is_id else _DEFAULT_SOURCES[self.kind]
            object.__setattr__(self, "sources", sources)

    def fits(self, value: Any) -> bool:
        """Return True if a value has this parameter's kind."""
        if isinstance(value, bool):
            return self.kind in ("boolean", "any")
        return isinstance(value, _TYPES.get(self.kind, object))

    def signature(self) -> str:
        """Return the parameter as the prompt lists it; ``?`` marks an optional parameter."""
        options = [f'"{choice}"' for choice in self.choices]
        options += [source.value for source in Source if source in self.sources]
        return f"{self.name}{'' if self.required else '?'}: {' | '.join(options)}"


def sources_of(names: Iterable[str], parameter_name: str) -> frozenset[Source]:
    """Return the sources with these names; raise ``ToolError`` if a name is not a source."""
    try:
        return frozenset(Source(name) for name in names)
    except ValueError as error:
        raise ToolError(
            f"Parameter {parameter_name!r} declares an unknown source: {error}. "
            f"Sources are {[source.value for source in Source]}."
        ) from error


def parameters_of(
    tool: str,
    schemas: Mapping[str, Mapping[str, Any]],
    required: Container[str],
    sources: Mapping[str, Iterable[str]] | None,
    definitions: Mapping[str, Any] | None = None,
) -> tuple[Parameter, ...]:
    """Return a tool's parameters from their JSON Schemas.

    Args:
        tool: The tool's name, for messages.
        schemas: The schema of each parameter, by the parameter's name.
        required: Names of the required parameters.
        sources: The allowed sources of each parameter's argument, by the parameter's name.
        definitions: The ``$defs`` of all schemas; by default, each schema has ``$defs`` of its own.

    Raises:
        ToolError: ``sources`` has an unknown parameter or an unknown source.
    """
    declared_sources = {
        name: sources_of(source_names, name) for name, source_names in (sources or {}).items()
    }
    if unknown := sorted(declared_sources.keys() - schemas.keys()):
        raise ToolError(f"Tool {tool!r} has no parameter {unknown}. Correct its sources.")
    parameters = []
    for name, schema in schemas.items():
        kind, choices = _kind_and_choices(schema, definitions or schema.get("$defs", {}))
        parameters.append(
            Parameter(
                name=name,
                description=str(schema.get("description", "")),
                kind=kind,
                sources=declared_sources.get(name, frozenset()),
                choices=choices,
                required=name in required,
            )
        )
    return tuple(parameters)


def _kind_and_choices(
    schema: Mapping[str, Any], definitions: Mapping[str, Any]
) -> tuple[str, tuple[str, ...]]:
    reference = str(schema.get("$ref", "")).rpartition("/")[2]
    if reference in definitions:
        # Each definition is followed once, since a definition may refer to itself.
        other_definitions = {name: d for name, d in definitions.items() if name != reference}
        return _kind_and_choices(definitions[reference], other_definitions)
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        return _kind_and_choices(options[0], definitions)
    values = schema.get("enum", [schema["const"]] if "const" in schema else ())
    if values and all(isinstance(value, str) for value in values):
        return "string", tuple(values)
    kind = schema.get("type")
    return (kind if kind in KINDS else "any"), ()
