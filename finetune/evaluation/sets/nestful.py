"""NESTFUL (Basu et al. 2024, arXiv 2409.03797): nested calls, converted to plans.

A record's gold output is a list of calls whose arguments refer to the outputs of earlier calls,
``$var1.field$``; they become steps whose arguments refer to ``s1.field``. The last call,
``var_result``, only names what is to be returned, and is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from casewright.errors import InputError, PlanError
from casewright.finetune.evaluation.item import EvaluationItem
from casewright.finetune.evaluation.sets.converted import (
    ConversionError,
    Converted,
    read_json,
    read_records,
    to_item,
)
from casewright.finetune.evaluation.sets.nestful_tools import tool_of
from casewright.planner import ListValue, Literal, Plan, Step, StepRef
from casewright.planner.plan import Scalar, Value
from casewright.tools import Toolbox, ToolSpec, alias

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
    found = False
    for subset in SUBSETS:
        records, tools = folder / f"{subset}-dev.jsonl", folder / f"{subset}-spec.json"
        if records.exists():
            found = True
            _convert(read_records(records), _shared(tools), items, refused)
    if (folder / VERSION_2).exists():
        found = True
        _convert(read_records(folder / VERSION_2), None, items, refused)
    if not found:
        raise InputError(
            f"{folder} holds no NESTFUL. It would hold executable-dev.jsonl beside "
            f"executable-spec.json, or {VERSION_2}."
        )
    return Converted(items, refused)


def _convert(
    records: Iterable[dict[str, Any]],
    shared: Toolbox | None,
    items: list[EvaluationItem],
    refused: list[tuple[str, str]],
) -> None:
    for number, record in enumerate(records):
        id_ = str(record.get("id") or record.get("sample_id") or number)
        try:
            # Most of these tools say of no parameter that it is required, and all of them are.
            toolbox = shared or _toolbox(_decoded(record.get("tools")), required=True)
            plan = _plan(_decoded(record.get("output")), toolbox)
            items.append(to_item(id_, str(record.get("input", "")), toolbox, plan))
        except ConversionError as error:
            refused.append((id_, str(error)))


def _decoded(value: Any) -> Any:
    """Return a value that the set keeps as the text of a Python literal."""
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
        tool = tool_of(specification, required=required)
        # Some tools stand in a specification twice, word for word but for what they return.
        tools.setdefault(tool.name, tool)
    return Toolbox(tools.values())


def _plan(calls: Any, toolbox: Toolbox) -> Plan:
    if not isinstance(calls, list) or not all(isinstance(call, Mapping) for call in calls):
        raise ConversionError("its calls are no list")
    steps: list[Step] = []
    places: dict[str, int] = {}
    for call in calls:
        if call.get("name") == RESULT:
            continue
        name = alias(str(call.get("name", "")))
        if name not in toolbox:
            raise ConversionError("a tool that is not in the specification")
        steps.append(Step(name, tuple(_arguments(call.get("arguments") or {}, places))))
        if label := _LABEL.fullmatch(str(call.get("label", ""))):
            places[label[1]] = len(steps)
    if not steps:
        raise ConversionError("it calls nothing")
    return Plan(tuple(steps))


def _arguments(
    arguments: Mapping[str, Any], places: Mapping[str, int]
) -> Iterable[tuple[str, Value]]:
    for name, value in arguments.items():
        if isinstance(value, list):
            yield alias(name), ListValue(tuple(_scalar(item, places) for item in value))
        else:
            yield alias(name), _scalar(value, places)


def _scalar(value: Any, places: Mapping[str, int]) -> Scalar:
    if isinstance(value, str) and _MENTION.search(value):
        return _reference(value, places)
    if isinstance(value, (str, bool, int, float)):
        try:
            return Literal(value)
        except PlanError as error:
            raise ConversionError("a value that no plan can hold") from error
    if value is None:
        raise ConversionError("a value that is null")
    raise ConversionError("a value that is an object, or a list in a list")


def _reference(text: str, places: Mapping[str, int]) -> StepRef:
    found = _REFERENCE.fullmatch(text)
    if found is None:
        if _REFERENCE.search(text):
            raise ConversionError("arithmetic or text around a reference")
        raise ConversionError("a reference that is malformed")
    label, field, item = found.groups()
    if label not in places:
        raise ConversionError("a reference to no earlier call")
    if item:
        raise ConversionError("a reference to an item of a list in a result")
    if field is None:
        raise ConversionError("a reference to a whole output")
    return StepRef(places[label], alias(field))
