"""ToolAlpaca's evaluation sets (Tang et al. 2023, arXiv:2306.05301) as plans of their APIs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from casewright.errors import InputError, PlanError
from casewright.finetune.instructions.instruction import Instruction, planned_instruction
from casewright.finetune.instructions.readers.api_text import api_toolbox
from casewright.finetune.instructions.readers.calls import Call, grounded, planned
from casewright.finetune.instructions.readers.records import (
    Refuse,
    list_of,
    read_json_list,
    unquoted,
)
from casewright.finetune.instructions.readers.refusal import Unfit
from casewright.planner import StepRef
from casewright.tools import Toolbox, alias

FILES = ("eval_simulated.json", "eval_real.json")
LICENCE = (
    "Apache-2.0; test items of ToolAlpaca: no score on it may be reported after training on them"
)
#: ``${userId from searchUser}``: a value that an earlier call returns.
_REFERENCE = re.compile(r'"?\$\{(\w+) from (\w+)\}"?')
_MARK = "\0ref\0"
#: A value that the set leaves open: ``${start date}``, or ``"{start date}"``.
_OPEN = re.compile(r"\$\{[^{}]*\}?|\"\{[^{}\"]*\}\"")


def read_toolalpaca(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield the instructions whose golden calls are a valid plan of their API.

    Credentials that the API's record names are no parameters here: whoever runs the tools has
    them. A reference to an earlier call's output becomes one to its step.

    Raises:
        InputError: A file cannot be read, or has another form.
    """
    files = [path] if path.is_file() else [path / name for name in FILES]
    if not any(file.is_file() for file in files):
        raise InputError(f"{path} has none of {list(FILES)}. Give the folder, or one of them.")
    for file in files:
        if file.is_file():
            yield from _read_file(file, refuse)


def _read_file(file: Path, refuse: Refuse) -> Iterator[Instruction]:
    for number, record in read_json_list(file):
        place = f"{file}, record {number}"
        questions = list_of(record, "Instructions", place)
        golden = list_of(record, "Golden_Answers", place)
        if len(questions) != len(golden):
            raise InputError(
                f"{place} has {len(questions)} Instructions and {len(golden)} Golden_Answers. "
                "There must be one answer for each."
            )
        secrets = frozenset(record.get("Authentication") or ())
        try:
            toolbox = api_toolbox(record.get("Function_Description"), secrets)
        except Unfit as unfit:
            for _ in questions:
                refuse(f"toolbox: {unfit}")
            continue
        for index, (question, calls) in enumerate(zip(questions, golden, strict=True), 1):
            id_ = f"toolalpaca:{file.stem}.{number}.{index}"
            source = f"toolalpaca:{file.name}:{number}.{index}"
            try:
                asked = _question(question)
                made = planned(
                    id_, asked, toolbox, list(_calls(calls, asked, toolbox, secrets)), "toolalpaca"
                )
                yield planned_instruction(id_, source, LICENCE, made)
            except Unfit as unfit:
                refuse(str(unfit))
            except PlanError:
                refuse("a plan that breaks a static check")


def _question(text: Any) -> str:
    if not isinstance(text, str) or not text.strip():
        raise Unfit("the question is empty, too long, or holds control characters")
    return unquoted(text)


def _calls(golden: Any, question: str, toolbox: Toolbox, secrets: frozenset[str]) -> Iterator[Call]:
    if not isinstance(golden, list) or not golden:
        raise Unfit("there are no golden calls")
    made: list[str] = []
    for call in golden:
        if not isinstance(call, Mapping) or not isinstance(call.get("Action"), str):
            raise Unfit("a golden call has another form")
        name = call["Action"]
        if name == "getDetails":
            raise Unfit("the user is asked for details")
        if alias(name) not in toolbox:
            raise Unfit("a call of a tool that is not declared")
        given = _arguments(call.get("Action_Input"), made)
        for value in given.values():
            # The set has calls that were copied from another question.
            if not grounded(value, question):
                raise Unfit("a text that has no word of the question")
        yield Call(name, {key: value for key, value in given.items() if key not in secrets})
        made.append(name)


def _arguments(text: Any, made: list[str]) -> Mapping[str, Any]:
    if not isinstance(text, str):
        raise Unfit("a golden call has another form")
    marked = _REFERENCE.sub(lambda found: json.dumps(f"{_MARK}{found[1]} {found[2]}"), text)
    if _OPEN.search(marked):
        raise Unfit("a value that the data set leaves open")
    try:
        given = json.loads(marked or "{}")
    except (ValueError, RecursionError):
        raise Unfit("a golden call's arguments are no JSON") from None
    if not isinstance(given, dict):
        raise Unfit("a golden call has another form")
    return {key: _resolved(value, made) for key, value in given.items()}


def _resolved(value: Any, made: list[str]) -> Any:
    if not isinstance(value, str) or not value.startswith(_MARK):
        return value
    field, _, tool = value[len(_MARK) :].partition(" ")
    if made.count(tool) != 1:
        raise Unfit("a reference to a call that was not made once before")
    return StepRef(made.index(tool) + 1, field)
