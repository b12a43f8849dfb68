"""ToolAlpaca's evaluation sets (Tang et al. 2023, arXiv:2306.05301) as plans of their APIs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.finetune.instructions.instruction import Instruction, PlannedQuery
from casewright.finetune.instructions.readers.calls import (
    FORM,
    NO_TOOL,
    Call,
    Refuse,
    Unfit,
    files_of,
    grounded,
    instruction_of,
    make_toolbox,
    parameter,
    planned,
    tool,
    unquoted,
)
from casewright.finetune.records import Record, read_records
from casewright.planner import StepRef
from casewright.tools import Parameter, Toolbox, alias

FILES = ("eval_simulated.json", "eval_real.json")
#: ``${userId from searchUser}``: a value that an earlier call returns.
_REFERENCE = re.compile(r'"?\$\{(\w+) from (\w+)\}"?')
_MARK = "\0ref\0"
#: A value that the set leaves open: ``${start date}``, or ``"{start date}"``.
_OPEN = re.compile(r"\$\{[^{}]*\}?|\"\{[^{}\"]*\}\"")


class _Api(Record):
    Instructions: list[Any]
    Golden_Answers: list[Any]
    Authentication: dict[str, Any] | list[Any] | None = None
    Function_Description: Any = None


def read_toolalpaca(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield the instructions whose golden calls are a valid plan of their API.

    Credentials that the API's record names are no parameters here: whoever runs the tools has
    them. A reference to an earlier call's output becomes one to its step.

    Raises:
        InputError: A file cannot be read, or has another form.
    """
    for file in files_of(path, *FILES):
        for number, record in read_records(file, _Api):
            questions, golden = record.Instructions, record.Golden_Answers
            if len(questions) != len(golden):
                raise InputError(
                    f"{file}, record {number} has {len(questions)} Instructions and {len(golden)} "
                    "Golden_Answers. There must be one answer for each."
                )
            secrets = frozenset(record.Authentication or ())
            try:
                toolbox = api_toolbox(record.Function_Description, secrets)
            except Unfit as unfit:
                for _ in questions:
                    refuse(f"toolbox: {unfit}")
                continue
            for index, (question, calls) in enumerate(zip(questions, golden, strict=True), 1):
                position = f"{number}.{index}"
                id_ = f"toolalpaca:{file.stem}.{position}"
                result = partial(_planned, id_, question, calls, toolbox, secrets)
                yield from instruction_of(id_, f"toolalpaca:{file.name}:{position}", result, refuse)


def _planned(
    id_: str, question: Any, golden: Any, toolbox: Toolbox, secrets: frozenset[str]
) -> PlannedQuery:
    if not isinstance(question, str) or not question.strip():
        raise Unfit("the question is empty, too long, or holds control characters")
    asked = unquoted(question)
    calls = list(_calls(golden, asked, toolbox, secrets))
    return planned(id_, asked, toolbox, calls, "toolalpaca")


def _calls(golden: Any, question: str, toolbox: Toolbox, secrets: frozenset[str]) -> Iterator[Call]:
    if not isinstance(golden, list) or not golden:
        raise Unfit("there are no golden calls")
    results: list[str] = []
    for call in golden:
        if not isinstance(call, Mapping) or not isinstance(call.get("Action"), str):
            raise Unfit(FORM)
        name = call["Action"]
        if name == "getDetails":
            raise Unfit("the user is asked for details")
        if alias(name) not in toolbox:
            raise Unfit(NO_TOOL)
        given = _arguments(call.get("Action_Input"), results)
        # The set has calls that were copied from another question.
        if not all(grounded(value, question) for value in given.values()):
            raise Unfit("a text that has no word of the question")
        yield Call(name, {key: value for key, value in given.items() if key not in secrets})
        results.append(name)


def _arguments(text: Any, made: list[str]) -> Mapping[str, Any]:
    if not isinstance(text, str):
        raise Unfit(FORM)
    marked = _REFERENCE.sub(lambda found: json.dumps(f"{_MARK}{found[1]} {found[2]}"), text)
    if _OPEN.search(marked):
        raise Unfit("a value that the data set leaves open")
    try:
        given = json.loads(marked or "{}")
    except (ValueError, RecursionError):
        raise Unfit("a golden call's arguments are no JSON") from None
    if not isinstance(given, dict):
        raise Unfit(FORM)
    return {key: _resolved(value, made) for key, value in given.items()}


def _resolved(value: Any, made: list[str]) -> Any:
    if not isinstance(value, str) or not value.startswith(_MARK):
        return value
    field, _, tool = value[len(_MARK) :].partition(" ")
    if made.count(tool) != 1:
        raise Unfit("a reference to a call that was not made once before")
    return StepRef(made.index(tool) + 1, field)


_OTHER_FORM = "a function's description has another form"
_PARAMETERS = re.compile(r"^Parameters: (.*)$", re.MULTILINE)
_STRUCTURE = re.compile(r"^ - Structure: (.*)$", re.MULTILINE)
_NAMED = re.compile(r"^(#\w+): (.*)$", re.MULTILINE)
_DECLARED = re.compile(
    r"(?P<required>Required\. )?(?P<type>\w+)(?:\[(?P<items>\w+)?.*\])?\. ?"
    r"(?:One of: \[(?P<choices>[^\]]*)\]\. ?)?(?P<said>.*)",
    re.DOTALL,
)


def api_toolbox(described: Any, secrets: frozenset[str]) -> Toolbox:
    """Return the toolbox of an API.

    Args:
        secrets: Names of parameters that are credentials: no plan writes them.

    Raises:
        Unfit: A description has another form, or a name that no plan can write.
    """
    if not isinstance(described, Mapping):
        raise Unfit(_OTHER_FORM)
    named = dict(_NAMED.findall(str(described.get("components") or "")))
    tools = []
    for name, text in described.items():
        if name != "components":
            if (result := _PARAMETERS.search(str(text))) is None:
                raise Unfit(_OTHER_FORM)
            said = str(text)[: result.start()]
            results = list(_fields(str(text), named))
            tools.append(tool(name, said, _parameters(result[1], secrets), results))
    return make_toolbox(tools)


def _parameters(text: str, secrets: frozenset[str]) -> list[Parameter]:
    try:
        declared = json.loads(text)
    except (ValueError, RecursionError):
        raise Unfit(_OTHER_FORM) from None
    return [_parameter(name, str(said)) for name, said in declared.items() if name not in secrets]


def _parameter(name: str, text: str) -> Parameter:
    if (result := _DECLARED.match(text)) is None:
        return parameter(name, text, "any", required=text.startswith("Required."))
    return parameter(
        name,
        result["said"],
        result["type"].lower(),
        required=result["required"] is not None,
        items=result["items"] or "",
        choices=[item.strip() for item in (result["choices"] or "").split(",") if item.strip()],
    )


def _fields(text: str, named: Mapping[str, str]) -> Iterator[str]:
    """Yield the fields that a result has; of a list, those of its items."""
    result = _STRUCTURE.search(text)
    structure = (result[1] if result else "").removeprefix("Array[")
    if reference := re.match(r"#\w+", structure):
        structure = named.get(reference[0], "")
    if not structure.startswith("Object{"):
        return
    depth, name = 0, ""
    for char in structure.removeprefix("Object{"):
        depth += (char in "{[") - (char in "}]")
        if depth < 0 or (depth == 0 and char == ","):
            if (field := name.partition(":")[0].strip()).isidentifier():
                yield field
            name = ""
            if depth < 0:
                return
        else:
            name += char
