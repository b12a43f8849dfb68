"""A tool as a JSON record declares it (``tools_extra`` of an annotated query)."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from casewright.errors import InputError, ToolError
from casewright.tools.alias import alias
from casewright.tools.parameter import Parameter
from casewright.tools.spec import ToolExample, ToolSpec


class _Example(BaseModel):
    query: str
    plan: str


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str
    parameters: dict[str, str] = {}
    results: list[str] = []
    description: str = ""
    example: _Example | None = None


def tool_from_record(record: Any) -> ToolSpec:
    """Make a tool to plan with from ``{name, parameters, results, description, example}``.

    Its parameters are required and take the sources that the plan language gives to undeclared
    ones. It cannot be executed.

    Raises:
        InputError: The record has another form.
    """
    try:
        read = _Record.model_validate(record)
        return ToolSpec(
            name=alias(read.name),
            description=read.description,
            parameters=tuple(Parameter(n, description=d) for n, d in read.parameters.items()),
            results=tuple(read.results),
            example=ToolExample(read.example.query, read.example.plan) if read.example else None,
        )
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the record"
        raise InputError(f"tools_extra: {place}: {first['msg']}.") from error
    except ToolError as error:
        raise InputError(f"tools_extra: {error}") from error
