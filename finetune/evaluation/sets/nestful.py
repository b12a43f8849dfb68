"""NESTFUL (Basu et al. 2024, arXiv 2409.03797): nested calls, converted to plans.

A record's gold output is a list of calls, which become steps. An argument may refer to a field of
an earlier call's output: ``$var1.field$`` becomes ``s1.field``. The last call, ``var_result``, only
names the values to return, and is omitted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from casewright.errors import InputError, PlanError, ToolError
from casewright.finetune.evaluation.item import EvaluationItem
from casewright.finetune.evaluation.sets.converted import Converted, read_json, to_item
from casewright.finetune.records import Record, read_records
from casewright.finetune.tool_sets.calls import KINDS, Unfit, unfit_on
from casewright.planner import ListValue, Literal, Plan, Step, StepRef
from casewright.planner.plan import Scalar, Value
from casewright.tools import Parameter, Source, Toolbox, ToolSpec, alias

#: Fields of a tool's specification that hold the tool's parameters.
_PARAMETERS = ("query_parameters", "path_parameters", "parameters", "arguments")
_KINDS = {**KINDS, "enum": "string", "int or float": "number"}
#: For each kind of parameter, the source of a literal. A text need not be in the question.
_SOURCES = {"string": Source.LITERAL, "boolean": Source.BOOLEAN}
_SOURCES |= {"number": Source.NUMBER, "integer": Source.NUMBER}


def _tool(specification: Mapping[str, Any], *, required: bool) -> ToolSpec:
    """Return the tool of a specification; ``required`` is the default of the parameters.

    If a field of the result is an object, the object's fields also become fields of the result. The
    name of such a field is its path (``location.name``).
    """
    with unfit_on(KeyError, TypeError, AttributeError, ToolError, reason=_OTHER_FORM):
        parameters = []
        for key in _PARAMETERS:
            declared, required_names = _declarations(specification.get(key))
            for name, field in declared.items():
                default = required if required_names is None else name in required_names
                is_required = bool(field.get("required", default))
                parameters.append(_parameter(name, field, required=is_required))
        returned = specification.get("output_parameters", specification.get("output_parameter"))
        paths = dict.fromkeys(_field_paths(_declarations(returned)[0]))
        name, description = alias(str(specification["name"])), specification.get("description", "")
        return ToolSpec(name, str(description), tuple(parameters), tuple(map(alias, paths)))


def _declarations(fields: Any) -> tuple[Mapping[str, Any], Sequence[str] | None]:
    """Return declarations by name, and the required names (``None`` without a JSON Schema)."""
    if not fields:
        return {}, None
    inner = fields.get("properties")
    # A parameter may itself have the name properties; then the values of ``inner`` are texts.
    if isinstance(inner, Mapping) and all(isinstance(item, Mapping) for item in inner.values()):
        return inner, fields.get("required", ())
    return fields, None


def _parameter(name: str, declared: Mapping[str, Any], *, required: bool) -> Parameter:
    full_type = str(declared.get("type", "")).lower()
    base_type = full_type.removeprefix("typing.").partition("[")[0].strip()
    kind = _KINDS.get(base_type, "any")
    sources = {Source.STEP, *([_SOURCES[kind]] if kind in _SOURCES else _SOURCES.values())}
    choices = _choices(declared) if base_type in ("", "string", "str", "enum") else ()
    if choices:
        # A plan may write a choice even if the sources allow no literal.
        kind, sources = "string", {Source.STEP}
    description = str(declared.get("description", ""))
    return Parameter(alias(name), description, kind, frozenset(sources), choices, required)


def _choices(declared: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the first list of texts among the fields that may hold a parameter's choices."""
    values = [declared.get(key) for key in ("enum", "allowed_values", "possible_values")]
    lists = (v for v in values if isinstance(v, list) and v and all(isinstance(t, str) for t in v))
    return tuple(dict.fromkeys(next(lists, ())))


def _field_paths(declared: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the paths of all fields; lists have no inner fields."""
    for name, field in declared.items():
        yield path + name
        inner = field.get("properties") if isinstance(field, Mapping) else None
        if isinstance(inner, Mapping):
            yield from _field_paths(inner, f"{path}{name}.")


#: Subsets of version 1: ``<name>-dev.jsonl`` beside ``<name>-spec.json``.
SUBSETS = ("executable", "glaive", "sgd")
#: The file of version 2, and the name of the call that only lists the values to return.
VERSION_2, RESULT_CALL = "v2_samples.jsonl", "var_result"

#: Patterns of a call's label, a reference to a call's output, and a text that looks like one.
_LABEL = re.compile(r"\$?var_?([0-9]+)\$?")
_REFERENCE = re.compile(r"\$var_?([0-9]+)(?:\.([^$\[\]]+))?(\[[^$]*)?\$")
_REFERENCE_LIKE = re.compile(r"\bvar_?[0-9]+\.|\$var_?[0-9]+")
_OTHER_FORM = "a tool's specification has another form"


class _Record(Record):
    id: Any = None
    sample_id: Any = None
    input: Any = ""
    tools: Any = None
    output: Any = None


def read_nestful(folder: Path) -> Converted:
    """Return the items of a folder that holds version 1, version 2 or both.

    A record of version 1 has all tools of its subset; a record of version 2 lists its tools. Raise
    ``InputError`` if the folder holds neither version, or a file cannot be read.
    """
    files = [(folder / f"{name}-dev.jsonl", folder / f"{name}-spec.json") for name in SUBSETS]
    existing = [pair for pair in [*files, (folder / VERSION_2, None)] if pair[0].exists()]
    if not existing:
        raise InputError(
            f"{folder} holds no NESTFUL. Give a folder with executable-dev.jsonl beside "
            f"executable-spec.json, or with {VERSION_2}."
        )
    return Converted.of(record for pair in existing for record in _conversions(*pair))


def _conversions(
    file: Path, specification: Path | None
) -> Iterator[tuple[str, Callable[[], EvaluationItem]]]:
    shared_toolbox = None
    if specification is not None:
        try:
            shared_toolbox = _toolbox(read_json(specification))
        except Unfit as unfit:
            raise InputError(f"{specification}: {unfit}.") from unfit
    for number, record in read_records(file, _Record, "Give the set's own folder with --data."):
        id_ = str(record.id or record.sample_id or number - 1)
        yield id_, partial(_item, id_, record, shared_toolbox)


def _item(id_: str, record: _Record, shared_toolbox: Toolbox | None) -> EvaluationItem:
    # Most tools of version 2 do not declare which parameters are required, so all are by default.
    toolbox = shared_toolbox or _toolbox(_decoded(record.tools), required=True)
    return to_item(id_, str(record.input), toolbox, _plan(_decoded(record.output), toolbox))


def _decoded(value: Any) -> Any:
    """Parse a text as a Python literal; return a value that is no text unchanged."""
    if not isinstance(value, str):
        return value
    errors = (ValueError, SyntaxError, MemoryError, RecursionError)
    with unfit_on(*errors, reason="its calls or tools are a text that is no literal"):
        return ast.literal_eval(value)


def _toolbox(specifications: Any, *, required: bool = False) -> Toolbox:
    if not isinstance(specifications, list):
        raise Unfit(_OTHER_FORM)
    tools: dict[str, ToolSpec] = {}
    for specification in specifications:
        tool = _tool(specification, required=required)
        # Some tools are declared twice, with different results; the first declaration counts.
        tools.setdefault(tool.name, tool)
    return Toolbox(tools.values())


def _plan(calls: Any, toolbox: Toolbox) -> Plan:
    if not isinstance(calls, list) or not all(isinstance(call, Mapping) for call in calls):
        raise Unfit("its calls are no list")
    steps: list[Step] = []
    step_of: dict[str, int] = {}  # a step's number by the number in the call's label
    for call in calls:
        if call.get("name") == RESULT_CALL:
            continue
        name = alias(str(call.get("name", "")))
        if name not in toolbox:
            raise Unfit("a tool that is not in the specification")
        arguments = {alias(n): _value(v, step_of) for n, v in (call.get("arguments") or {}).items()}
        steps.append(Step(name, tuple(arguments.items())))
        if label := _LABEL.fullmatch(str(call.get("label", ""))):
            step_of[label[1]] = len(steps)
    if not steps:
        raise Unfit("it calls nothing")
    return Plan(tuple(steps))


def _value(value: Any, step_of: Mapping[str, int]) -> Value:
    if isinstance(value, list):
        return ListValue(tuple(_scalar(item, step_of) for item in value))
    return _scalar(value, step_of)


def _scalar(value: Any, step_of: Mapping[str, int]) -> Scalar:
    if isinstance(value, str) and _REFERENCE_LIKE.search(value):
        return _reference(value, step_of)
    if isinstance(value, (str, bool, int, float)):
        with unfit_on(PlanError, reason="a value that no plan can hold"):
            return Literal(value)
    kind = "null" if value is None else "an object, or a list in a list"
    raise Unfit(f"a value that is {kind}")


def _reference(text: str, step_of: Mapping[str, int]) -> StepRef:
    match = _REFERENCE.fullmatch(text)
    if match is None:
        if _REFERENCE.search(text):
            raise Unfit("arithmetic or text around a reference")
        raise Unfit("a reference that is malformed")
    label, field, index = match.groups()
    if label not in step_of:
        raise Unfit("a reference to no earlier call")
    if index:
        raise Unfit("a reference to an item of a list in a result")
    if field is None:
        raise Unfit("a reference to a whole output")
    return StepRef(step_of[label], alias(field))
