"""Converts functions and calls of function-calling data to toolboxes and plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright.errors import InputError, PlanError, ToolError
from casewright.planner import (
    MAX_STEPS,
    AnnotatedQuery,
    ListValue,
    Literal,
    Plan,
    PlanRequest,
    QueryRecord,
    Step,
    StepRef,
)
from casewright.planner.plan import Value
from casewright.stores.feedback.sufficiency import content_words
from casewright.tools import NO_EVIDENCE, Parameter, Source, Toolbox, ToolSpec, alias

#: A query with its gold plan, and the toolbox that it came with.
Query = tuple[AnnotatedQuery, Toolbox]
#: A function without arguments that converts one record; may raise ``Unfit`` or ``PlanError``.
Conversion = Callable[[], Query]
#: Kinds of parameters by the names of types in JSON Schema and in Python.
KINDS = {
    **dict.fromkeys(("string", "str"), "string"),
    **dict.fromkeys(("integer", "int"), "integer"),
    **dict.fromkeys(("float", "double", "number"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("array", "list", "tuple"), "array"),
}
#: Allowed sources of arguments (see the glossary): references, texts, and values by their kind.
_REFERENCES = frozenset({Source.CONTEXT, Source.STEP})
_TEXT = frozenset({Source.LITERAL, Source.SPAN, Source.QUESTION})
_KIND_SOURCES = {
    "string": _TEXT,
    "integer": frozenset({Source.NUMBER}),
    "number": frozenset({Source.NUMBER}),
    "boolean": frozenset({Source.BOOLEAN}),
}
#: Reasons why a record cannot be used.
OTHER_FORM = "a gold call is not in the expected form"
NO_TOOL = "a call of a tool that is not declared"
NO_QUESTION = "the question is empty, too long, or holds control characters"
NO_PLAN = "a plan that breaks a static check"
_OTHER_TYPE = "a value of another type than declared"
#: Reasons by parts of a static check's message; the first part that is in the message counts.
_REASONS = (
    ("There is no tool", NO_TOOL),
    ("has no parameter", "an argument that is not declared"),
    ("needs the argument", "a required argument is not given"),
    ("is no run of adjacent words", "an identifier whose words are not in the question"),
    ("is none of its choices", "a value that is none of the declared choices"),
    ("steps; at most", "more steps than a plan may have"),
    ("results of", "a field that the results do not declare"),
    ("may not be", _OTHER_TYPE),
    ("must be a", _OTHER_TYPE),
    ("not a list", _OTHER_TYPE),
    ("", NO_PLAN),
)


class Unfit(Exception):  # noqa: N818 - not an error: it is caught, and counted
    """A record cannot be used. The message is the reason, in equal words for equal reasons."""


@contextmanager
def unfit_on(*errors: type[Exception], reason: str) -> Iterator[None]:
    """Raise ``Unfit`` with a reason if the block raises one of these errors."""
    try:
        yield
    except errors as error:
        raise Unfit(reason) from error


def unquoted(text: str) -> str:
    """Return a question without quotation marks around it, unless it also has marks inside."""
    stripped = text.strip()
    inside = stripped.strip('"').strip()
    return inside if '"' not in inside else stripped


def files_of(path: Path, *names: str) -> list[Path]:
    """Return a path to a file as a list, or else the named files that exist in the folder."""
    candidates = [path] if path.is_file() else [path / name for name in names]
    if files := [file for file in candidates if file.is_file()]:
        return files
    raise InputError(f"{path} has none of {list(names)}. Give such a file, or its folder.")


def make_parameter(
    name: str, description: str, type_: str, *, required: bool, items: str = "", choices: Any = ()
) -> Parameter:
    """Return a parameter of function-calling data; raise ``Unfit`` if plans cannot write its name.

    Values may be literals, since the data have no context. Identifiers must be spans of the
    question, so that no plan invents them. ``type_``, and ``items`` for the items of an array, are
    keys of ``KINDS``; other types allow any value. ``choices`` are ignored unless all are texts.
    """
    kind = KINDS.get(type_, "any")
    texts = tuple(choices) if all(isinstance(choice, str) for choice in choices or ()) else ()
    value_kind = KINDS.get(items, "any") if kind == "array" else kind
    sources = _KIND_SOURCES.get(value_kind, _TEXT | {Source.NUMBER, Source.BOOLEAN}) | _REFERENCES
    # ``userId`` is an identifier, ``bid`` is not.
    if value_kind == "string" and (name.lower() == "id" or name.endswith(("_id", "Id", "ID"))):
        sources = _REFERENCES | {Source.SPAN}
    if texts:
        sources = frozenset()  # a plan may always write the choices
    description = " ".join(description.split())
    with unfit_on(ToolError, reason="a parameter's name is no identifier"):
        return Parameter(name, description, kind, sources, tuple(filter(None, texts)), required)


def make_tool(
    name: str, description: str, parameters: Iterable[Parameter], results: Iterable[str]
) -> ToolSpec:
    """Return the tool ``alias(name)``; raise ``Unfit`` for an invalid parameter or result name."""
    text = " ".join(description.split())
    with unfit_on(ToolError, reason="a tool's parameters or results have no usable names"):
        return ToolSpec(alias(name), text, tuple(parameters), tuple(results) or ("evidence",))


def make_toolbox(tools: Iterable[ToolSpec]) -> Toolbox:
    """Return a toolbox; raise ``Unfit`` if two tools have one name."""
    with unfit_on(ToolError, reason="two tools have one name"):
        return Toolbox(tools)


def function_tool(function: Any) -> ToolSpec:
    """Return the tool of ``{name, description, parameters, response}``; may raise ``Unfit``."""
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise Unfit("a function has no name")
    schema = function.get("parameters") or {}
    properties = schema.get("properties") or {} if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not all(
        isinstance(declared, Mapping) for declared in properties.values()
    ):
        raise Unfit("a function's parameters are no JSON Schema")
    parameters = [
        make_parameter(
            str(name),
            str(declared.get("description", "")),
            str(declared.get("type", "")),
            required=name in (schema.get("required") or ()),
            items=str(_mapping_or_empty(declared.get("items")).get("type", "")),
            choices=declared.get("enum") or (),
        )
        for name, declared in properties.items()
    ]
    fields = _mapping_or_empty(_mapping_or_empty(function.get("response")).get("properties"))
    results = [name for name in fields if isinstance(name, str) and name.isidentifier()]
    return make_tool(function["name"], str(function.get("description", "")), parameters, results)


def _mapping_or_empty(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


@dataclass(frozen=True, slots=True)
class GoldCall:
    """A gold call, with the set's name of the tool; a ``StepRef`` refers to an earlier call."""

    tool: str
    arguments: Mapping[str, Any]


def query_with_plan(
    id_: str, question: str, toolbox: Toolbox, calls: Iterable[GoldCall], label: str
) -> Query:
    """Return a query with the plan of its gold calls, or ``no_evidence()`` if there are none.

    Raises ``Unfit`` if the question is not valid, or the calls are no valid plan for the toolbox.
    """
    plan = _plan_of(calls, toolbox)
    valid_request(question, toolbox, plan)
    return AnnotatedQuery(QueryRecord(id=id_, query=question), plan, label), toolbox


def valid_request(
    question: str, toolbox: Toolbox, plan: Plan, max_steps: int = MAX_STEPS
) -> PlanRequest:
    """Return a question's request; raise ``Unfit`` if the question or the plan is not valid."""
    with unfit_on(InputError, reason=NO_QUESTION):
        request = PlanRequest(question, toolbox, max_steps=max_steps)
    for violation in request.violations(plan):
        raise Unfit(next(reason for part, reason in _REASONS if part in violation.rule))
    return request


def _plan_of(calls: Iterable[GoldCall], toolbox: Toolbox) -> Plan:
    """Return the plan of calls, without optional arguments that are empty texts or nulls."""
    steps = []
    for call in calls:
        name = alias(call.tool)
        if name not in toolbox:
            raise Unfit(NO_TOOL)
        arguments = []
        for key, value in call.arguments.items():
            declared = toolbox[name].parameter(key)
            if value in ("", None):
                if declared is not None and declared.required:
                    raise Unfit("a required argument is empty")
                continue
            arguments.append((key, _plan_value(value, declared.kind if declared else "any")))
        steps.append(Step(name, tuple(arguments)))
    return Plan(tuple(steps) or (Step(NO_EVIDENCE.name),))


def shares_words(value: Any, question: str) -> bool:
    """Return False only for a text of several words, none of which is in the question."""
    if not isinstance(value, str) or len(value.split()) < 2:
        return True
    words = content_words(value)
    return not words or bool(words & content_words(question))


def _plan_value(value: Any, kind: str) -> Value:
    if isinstance(value, (list, tuple)):
        if any(isinstance(item, (list, tuple, dict)) for item in value):
            raise Unfit("a nested list or an object in a list")
        if not value:
            raise Unfit("an empty list")
        return ListValue(tuple(map(_plan_scalar, value)))
    if isinstance(value, str) and kind in ("integer", "number"):
        # Some sets write numbers as texts.
        with unfit_on(ValueError, reason=_OTHER_TYPE):
            value = int(value) if kind == "integer" else float(value)
    return _plan_scalar(value)


def _plan_scalar(value: Any) -> Literal | StepRef:
    if isinstance(value, StepRef):
        return value
    if isinstance(value, dict):
        raise Unfit("an object as an argument")
    if not isinstance(value, (str, int, float, bool)):
        raise Unfit("a null in a list")
    with unfit_on(PlanError, reason="a number or text that no plan can hold"):
        return Literal(value)
