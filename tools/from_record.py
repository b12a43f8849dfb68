"""A tool as a JSON record declares it (``tools_extra`` of an annotated query, a toolbox's file)."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from pydantic_core import ErrorDetails

from casewright.errors import InputError, ToolError
from casewright.tools.alias import NAME, alias
from casewright.tools.parameter import Parameter, sources_of
from casewright.tools.spec import ToolExample, ToolSpec

#: What to write in place of a value that has another type.
_MENDS = {
    "missing": "Add it.",
    "string_type": "Write a text.",
    "bool_type": "Write true or false.",
    "list_type": "Write a list of texts.",
    "dict_type": "Write an object of names and descriptions.",
    "model_type": "Write an object.",
}


class _Example(BaseModel):
    query: str
    plan: str


class _Parameter(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    description: str = ""
    kind: str | None = None
    sources: list[str] | None = None
    choices: list[str] = []
    required: bool = True

    def parameter(self, name: str) -> Parameter:
        return Parameter(
            name,
            self.description,
            self.kind if self.kind is not None else "string" if self.choices else "any",
            sources_of(self.sources or (), name),
            tuple(self.choices),
            self.required,
        )


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str
    parameters: dict[str, _Parameter] = {}
    results: list[str] = []
    description: str = ""
    example: _Example | None = None

    @field_validator("parameters", mode="before")
    @classmethod
    def _described(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {n: {"description": p} if isinstance(p, str) else p for n, p in value.items()}


def tool_from_record(record: Any) -> ToolSpec:
    """Make a tool to plan with from ``{name, parameters, results, description, example}``.

    A parameter that is given as its description is required and takes the sources that the plan
    language gives to undeclared ones; ``read_tool`` says what else may be given. The tool cannot
    be executed.

    Raises:
        InputError: The record has another form.
    """
    try:
        return read_tool(record)
    except ToolError as error:
        raise InputError(f"tools_extra: {error}") from error


def read_tool(record: Any, *, exact: bool = False) -> ToolSpec:
    """Make a tool to plan with from a record.

    Each of its ``parameters`` is a description, or ``{description, kind, sources, choices,
    required}``, all of them optional.

    Args:
        record: A decoded JSON value.
        exact: Refuse fields of the record that are not known, and take a name that is an
            identifier as it is, also where it is no alias of itself (such as ``get_xml``).

    Raises:
        ToolError: The record has another form; names the parameter, where it is one.
    """
    try:
        read = _Record.model_validate(record)
    except ValidationError as error:
        raise ToolError(_told(error.errors()[0])) from error
    if exact and (unknown := [name for name in record if name not in _Record.model_fields]):
        raise ToolError(_unknown(unknown[0], list(_Record.model_fields)))
    name = read.name if exact and NAME.fullmatch(read.name) else alias(read.name)
    return ToolSpec(
        name=name,
        description=read.description,
        parameters=tuple(p.parameter(n) for n, p in read.parameters.items()),
        results=tuple(read.results),
        example=ToolExample(read.example.query, read.example.plan) if read.example else None,
    )


def _told(error: ErrorDetails) -> str:
    place = list(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        told = _unknown(place.pop(), list(_Parameter.model_fields))
    elif place[:1] == ["parameters"] and len(place) == 2:
        # It is neither: pydantic knows of the object alone.
        told = "It is neither a text nor an object. Write its description."
    else:
        told = f"{error['msg']}. {_MENDS.get(error['type'], '')}".rstrip()
    return f"{'.'.join(place) or 'the record'}: {told}"


def _unknown(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, 1)
    mend = f"Did you mean {near[0]}?" if near else f"Fields are {', '.join(known)}."
    return f"There is no field {name!r}. {mend}"
