"""NESTFUL (Basu et al. 2024, arXiv 2409.03797): nested calls, converted to plans.

A record's gold output is a list of calls whose arguments refer to the outputs of earlier calls,
``$var1.field$``; they become steps whose arguments refer to ``s1.field``. The last call,
``var_result``, only names the values to return, and is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from casewright.errors import InputError, PlanError, ToolError
from casewright.finetune.evaluation.item import EvaluationItem
from casewright.finetune.evaluation.sets.converted import (
    ConversionError,
    Converted,
    read_json,
    read_objects,
    to_item,
)
from casewright.planner import ListValue, Literal, Plan, Step, StepRef
from casewright.planner.plan import Scalar, Value
from casewright.tools import Parameter, Source, Toolbox, ToolSpec, alias

#: Fields of specifications that hold parameters.
_PARAMETERS = ("query_parameters", "path_parameters", "parameters", "arguments")
_CHOICES = ("enum", "allowed_values", "possible_values")
_KINDS = {
    **dict.fromkeys(("string", "str", "enum"), "string"),
    **dict.fromkeys(("number", "float", "int or float"), "number"),
    **dict.fromkeys(("integer", "int"), "integer"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("array", "list"), "array"),
}
#: Plain values need not stand in the question.
_SOURCES = {
    "string": {Source.LITERAL},
    "number": {Source.NUMBER},
    "integer": {Source.NUMBER},
    "boolean": {Source.BOOLEAN},
}
_ANY = {Source.LITERAL, Source.NUMBER, Source.BOOLEAN}


def _tool(specification: Mapping[str, Any], *, required: bool) -> ToolSpec:
    """Return the tool of a specification, parameters required by default or not.

    Fields of an object that a tool returns are fields of its result, named by their path
    (``location.name``).
    """
    try:
        parameters = []
        for key in _PARAMETERS:
            declared, names = _declared(specification.get(key))
            for name, item in declared.items():
                needed = item.get("required", required if names is None else name in names)
                parameters.append(_parameter(name, item, required=bool(needed)))
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


def _declared(fields: Any) -> tuple[Mapping[str, Any], Sequence[str] | None]:
    """Return declarations by name, and the required names of a JSON Schema."""
    if not fields:
        return {}, None
    inner = fields.get("properties")
    # A parameter may itself be called properties; its declaration then describes it.
    if isinstance(inner, Mapping) and all(isinstance(item, Mapping) for item in inner.values()):
        return inner, fields.get("required", ())
    return fields, None


def _parameter(name: str, declared: Mapping[str, Any], *, required: bool) -> Parameter:
    facts = str(declared.get("type", "")).lower()
    first = facts.removeprefix("typing.").partition("[")[0].strip()
    kind = _KINDS.get(first, "any")
    choices = _choices(declared)
    sources: set[Source] = set()
    if choices and first in ("", "string", "str", "enum"):
        kind = "string"
    else:
        choices = ()
        sources = _SOURCES.get(kind, _ANY)
    description = str(declared.get("description", ""))
    sources_and_steps = frozenset({*sources, Source.STEP})
    return Parameter(alias(name), description, kind, sources_and_steps, choices, required)


def _choices(declared: Mapping[str, Any]) -> tuple[str, ...]:
    for key in _CHOICES:
        values = declared.get(key)
        if isinstance(values, list) and values and all(isinstance(v, str) for v in values):
            return tuple(dict.fromkeys(values))
    return ()


def _fields(declared: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the paths of all fields; lists have no inner ones."""
    for name, field in declared.items():
        yield path + name
        inner = field.get("properties") if isinstance(field, Mapping) else None
        if isinstance(inner, Mapping):
            yield from _fields(inner, f"{path}{name}.")


#: Subsets of version 1: ``<name>-dev.jsonl`` beside ``<name>-spec.json``.
SUBSETS = ("executable", "glaive", "sgd")
VERSION_2 = "v2_samples.jsonl"
RESULT = "var_result"

_LABEL = re.compile(r"\$?var_?([0-9]+)\$?")
_REFERENCE = re.compile(r"\$var_?([0-9]+)(?:\.([^$\[\]]+))?(\[[^$]*)?\$")
_MENTION = re.compile(r"\bvar_?[0-9]+\.|\$var_?[0-9]+")


def read_nestful(folder: Path) -> Converted:
    """Convert the records of both versions that a folder holds.

    The toolbox of a record of version 1 is every tool of its subset; of version 2, the record's
    own tools.

    Raises:
        InputError: The folder holds neither version, or a file cannot be read.
    """
    items: list[EvaluationItem] = []
    refused: list[tuple[str, str]] = []
    files = [(folder / f"{name}-dev.jsonl", folder / f"{name}-spec.json") for name in SUBSETS]
    known = [pair for pair in [*files, (folder / VERSION_2, None)] if pair[0].exists()]
    if not known:
        raise InputError(
            f"{folder} holds no NESTFUL. Give a folder with executable-dev.jsonl beside "
            f"executable-spec.json, or with {VERSION_2}."
        )
    for file, specification in known:
        records = read_objects(file)
        shared = None if specification is None else _shared(specification)
        for number, record in enumerate(records):
            id_ = str(record.get("id") or record.get("sample_id") or number)
            try:
                # Most tools of version 2 do not declare that parameters are required; all are.
                toolbox = shared or _toolbox(_decoded(record.get("tools")), required=True)
                plan = _plan(_decoded(record.get("output")), toolbox)
                items.append(to_item(id_, str(record.get("input", "")), toolbox, plan))
            except ConversionError as error:
                refused.append((id_, str(error)))
    return Converted(items, refused)


def _decoded(value: Any) -> Any:
    """Return the value of a text that is a Python literal; other values as they are."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise ConversionError("its calls or tools are text that is no literal") from error


def _shared(file: Path) -> Toolbox:
    try:
        return _toolbox(read_json(file))
    except ConversionError as error:
        raise InputError(f"{file}: {error}.") from error


def _toolbox(specifications: Any, *, required: bool = False) -> Toolbox:
    if not isinstance(specifications, list):
        raise ConversionError("a tool's specification has another form")
    tools: dict[str, ToolSpec] = {}
    for specification in specifications:
        tool = _tool(specification, required=required)
        # Some tools are there twice, with other results.
        tools.setdefault(tool.name, tool)
    return Toolbox(tools.values())


def _plan(calls: Any, toolbox: Toolbox) -> Plan:
    if not isinstance(calls, list) or not all(isinstance(call, Mapping) for call in calls):
        raise ConversionError("its calls are no list")
    steps: list[Step] = []
    numbers: dict[str, int] = {}
    for call in calls:
        if call.get("name") == RESULT:
            continue
        name = alias(str(call.get("name", "")))
        if name not in toolbox:
            raise ConversionError("a tool that is not in the specification")
        arguments = {alias(n): _value(v, numbers) for n, v in (call.get("arguments") or {}).items()}
        steps.append(Step(name, tuple(arguments.items())))
        if label := _LABEL.fullmatch(str(call.get("label", ""))):
            numbers[label[1]] = len(steps)
    if not steps:
        raise ConversionError("it calls nothing")
    return Plan(tuple(steps))


def _value(value: Any, numbers: Mapping[str, int]) -> Value:
    if isinstance(value, list):
        return ListValue(tuple(_scalar(item, numbers) for item in value))
    return _scalar(value, numbers)


def _scalar(value: Any, numbers: Mapping[str, int]) -> Scalar:
    if isinstance(value, str) and _MENTION.search(value):
        return _reference(value, numbers)
    if isinstance(value, (str, bool, int, float)):
        try:
            return Literal(value)
        except PlanError as error:
            raise ConversionError("a value that no plan can hold") from error
    if value is None:
        raise ConversionError("a value that is null")
    raise ConversionError("a value that is an object, or a list in a list")


def _reference(text: str, numbers: Mapping[str, int]) -> StepRef:
    match = _REFERENCE.fullmatch(text)
    if match is None:
        if _REFERENCE.search(text):
            raise ConversionError("arithmetic or text around a reference")
        raise ConversionError("a reference that is malformed")
    label, field, item = match.groups()
    if label not in numbers:
        raise ConversionError("a reference to no earlier call")
    if item:
        raise ConversionError("a reference to an item of a list in a result")
    if field is None:
        raise ConversionError("a reference to a whole output")
    return StepRef(numbers[label], alias(field))
