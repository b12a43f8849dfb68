"""Functions and calls of function-calling data as toolboxes and plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright.errors import InputError, PlanError, ToolError
from casewright.finetune.instructions.instruction import (
    Instruction,
    PlannedQuery,
    planned_instruction,
)
from casewright.finetune.instructions.words import stems
from casewright.planner import (
    AnnotatedQuery,
    ListValue,
    Literal,
    Plan,
    PlanRequest,
    QueryRecord,
    Step,
    StepRef,
    violations,
)
from casewright.planner.plan import Value
from casewright.tools import NO_EVIDENCE, Parameter, Source, Toolbox, ToolSpec, alias

#: Told the reason for each record, or part of one, that no instruction is made of.
Refuse = Callable[[str], None]


class Unfit(Exception):  # noqa: N818 - no error: it is caught, and counted
    """A record that does not fit; its text is the reason, the same for all of its kind."""


def unquoted(text: str) -> str:
    """Return a question without the quotation marks around the whole of it, one of them lost."""
    asked = text.strip()
    inside = asked.strip('"').strip()
    return inside if '"' not in inside else asked


def files_of(path: Path, *names: str) -> list[Path]:
    """Return the path itself where it is a file, else the files of these names in the folder.

    Raises:
        InputError: There is none.
    """
    result = [path] if path.is_file() else [path / name for name in names]
    if there := [file for file in result if file.is_file()]:
        return there
    raise InputError(f"{path} has none of {list(names)}. Give the folder that holds them, or one.")


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
    entries = [
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
    return tool(function["name"], str(function.get("description", "")), entries, results)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


FORM = "a golden call has another form"
NO_TOOL = "a call of a tool that is not declared"
_NO_QUESTION = "the question is empty, too long, or holds control characters"
_NO_PLAN = "a plan that breaks a static check"
_OTHER_TYPE = "a value of another type than declared"
#: What a rule of the static checks says, and the reason that is counted for it.
_REASONS = (
    ("There is no tool", NO_TOOL),
    ("has no parameter", "an argument that is not declared"),
    ("needs the argument", "a required argument is not given"),
    ("is no run of adjacent words", "an identifier that is no words of the question"),
    ("is none of its choices", "a value that is none of the declared choices"),
    ("steps; at most", "more steps than a plan may have"),
    ("results of", "a field that the results do not declare"),
    ("may not be", _OTHER_TYPE),
    ("is none.", _OTHER_TYPE),
    ("not a list", _OTHER_TYPE),
    ("", _NO_PLAN),
)


@dataclass(frozen=True, slots=True)
class Call:
    """A call: the tool's own name, and values; a ``StepRef`` stands for an earlier result."""

    tool: str
    arguments: Mapping[str, Any]


def instruction_of(
    id_: str, source: str, made: Callable[[], PlannedQuery], refuse: Refuse, of: str = ""
) -> Iterator[Instruction]:
    """Yield the instruction that is made of a record, or tell why there is none.

    Args:
        source: The reader's name, the file and the place in it.
        made: Returns the query and its plan; raises ``Unfit`` where the record does not fit.
    """
    try:
        yield planned_instruction(id_, source, made())
    except Unfit as unfit:
        refuse(f"{of}{unfit}")
    except PlanError:
        refuse(f"{of}{_NO_PLAN}")


def planned(
    id_: str,
    question: str,
    toolbox: Toolbox,
    calls: Iterable[Call],
    label: str,
) -> PlannedQuery:
    """Return a query with the plan of these calls, valid for the toolbox.

    Args:
        calls: The calls, in order; without any, nothing is looked up.

    Raises:
        Unfit: It is no question, or the calls are no valid plan.
    """
    plan = _plan_of(calls, toolbox)
    try:
        request = PlanRequest(question, toolbox)
    except InputError as error:
        raise Unfit(_NO_QUESTION) from error
    for broken in violations(
        plan, toolbox, question=question, context={}, max_steps=request.max_steps
    ):
        raise Unfit(next(reason for said, reason in _REASONS if said in broken.rule))
    query = AnnotatedQuery(QueryRecord(id=id_, query=question), plan, label)
    return PlannedQuery(query, toolbox)


def _plan_of(calls: Iterable[Call], toolbox: Toolbox) -> Plan:
    """Return the plan of calls; empty texts and nulls are left out where they are optional."""
    steps = []
    for call in calls:
        name = alias(call.tool)
        if name not in toolbox:
            raise Unfit(NO_TOOL)
        given = []
        for key, value in call.arguments.items():
            known = toolbox[name].parameter(key)
            if value in ("", None):
                if known is not None and known.required:
                    raise Unfit("a required argument is empty")
                continue
            given.append((key, _value(value, known.kind if known else "any")))
        steps.append(Step(name, tuple(given)))
    return Plan(tuple(steps) or (Step(NO_EVIDENCE.name),))


def grounded(value: Any, question: str) -> bool:
    """Return whether a text of several words has a word of the question; else true."""
    if not isinstance(value, str) or len(value.split()) < 2:
        return True
    said = stems(value)
    return not said or bool(said & stems(question))


def _value(value: Any, kind: str) -> Value:
    if isinstance(value, (list, tuple)):
        if any(isinstance(item, (list, tuple, dict)) for item in value):
            raise Unfit("a nested list or an object in a list")
        if not value:
            raise Unfit("an empty list")
        return ListValue(tuple(_scalar(item) for item in value))
    if isinstance(value, str) and kind in ("integer", "number"):
        # Some sets write numbers as texts.
        try:
            value = int(value) if kind == "integer" else float(value)
        except ValueError:
            raise Unfit(_OTHER_TYPE) from None
    return _scalar(value)


def _scalar(value: Any) -> Literal | StepRef:
    if isinstance(value, StepRef):
        return value
    if isinstance(value, dict):
        raise Unfit("an object as an argument")
    if not isinstance(value, (str, int, float, bool)):
        raise Unfit("a null in a list")
    try:
        return Literal(value)
    except PlanError as error:
        raise Unfit("a number or text that no plan can hold") from error
