"""A parameter of a tool: its type, and where its argument may come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from casewright.errors import ToolError
from casewright.tools.alias import NAME
from casewright.tools.source import Source, default_sources

KINDS = ("string", "number", "integer", "boolean", "array", "any")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a tool.

    Attributes:
        name: An identifier.
        description: For the planner's prompt.
        kind: JSON Schema type, or ``any``.
        sources: Where its argument may come from; empty takes the defaults for name and kind.
        choices: An enumeration: the texts that may be written as literals.
        required: Whether a plan must give it.
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
            object.__setattr__(self, "sources", default_sources(self.name, self.kind))

    def fits(self, value: Any) -> bool:
        """Say whether a value has this parameter's type."""
        match self.kind:
            case "string":
                return isinstance(value, str)
            case "number":
                return isinstance(value, (int, float)) and not isinstance(value, bool)
            case "integer":
                return isinstance(value, int) and not isinstance(value, bool)
            case "boolean":
                return isinstance(value, bool)
            case "array":
                return isinstance(value, list)
            case _:
                return True

    def signature(self) -> str:
        """Return name and sources as the prompt shows them."""
        named = [f'"{choice}"' for choice in self.choices] + [
            s.value for s in Source if s in self.sources
        ]
        return f"{self.name}{'' if self.required else '?'}: {' | '.join(named)}"


def sources_of(names: Iterable[str], parameter: str) -> frozenset[Source]:
    """Read sources by their names.

    Raises:
        ToolError: A name is no source.
    """
    try:
        return frozenset(Source(name) for name in names)
    except ValueError as error:
        raise ToolError(
            f"Parameter {parameter!r} declares an unknown source: {error}. "
            f"Sources are {[source.value for source in Source]}."
        ) from error


def parameter_from_json_schema(
    name: str,
    schema: Mapping[str, Any],
    *,
    required: bool,
    sources: Iterable[str] | None = None,
    definitions: Mapping[str, Any] | None = None,
) -> Parameter:
    """Make a parameter from its JSON Schema, sources declared or by default.

    Args:
        name: The parameter's name.
        schema: Its own part of the schema.
        required: Whether a plan must give it.
        sources: Where its argument may come from.
        definitions: What a ``$ref`` in its part refers to, by name: the whole schema's ``$defs``.
    """
    kind, choices = _shape(schema, definitions or {})
    declared = sources_of(sources, name) if sources is not None else frozenset()
    return Parameter(
        name=name,
        description=str(schema.get("description", "")),
        kind=kind,
        sources=declared,
        choices=choices,
        required=required,
    )


def _shape(
    schema: Mapping[str, Any], definitions: Mapping[str, Any]
) -> tuple[str, tuple[str, ...]]:
    """Return the kind of a parameter, and the texts that it may be."""
    referred = str(schema.get("$ref", "")).rpartition("/")[2]
    if referred in definitions:
        # Each definition is followed once: one that refers to itself has no end.
        others = {name: other for name, other in definitions.items() if name != referred}
        return _shape(definitions[referred], others)
    options = [o for o in schema.get("anyOf", ()) if o.get("type") != "null"]
    if len(options) == 1:
        return _shape(options[0], definitions)
    values = schema.get("enum", [schema["const"]] if "const" in schema else ())
    if values and all(isinstance(value, str) for value in values):
        return "string", tuple(values)
    kind = schema.get("type")
    return (kind if kind in KINDS else "any"), ()
