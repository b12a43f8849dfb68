"""Seal-Tools (Wu et al. 2024, arXiv:2405.08355) as plans of the tools that it retrieved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from casewright.errors import InputError, PlanError
from casewright.finetune.instructions.instruction import Instruction, planned_instruction
from casewright.finetune.instructions.readers.calls import Call, planned
from casewright.finetune.instructions.readers.functions import toolbox_of
from casewright.finetune.instructions.readers.records import (
    Refuse,
    list_of,
    read_json_lines,
    text_of,
)
from casewright.finetune.instructions.readers.refusal import Unfit
from casewright.planner import StepRef

TOOLS = "tool.jsonl"
FILES = ("dev-dev.jsonl", "test_in_domain-dev.jsonl", "test_out_domain-dev.jsonl")
LICENCE = (
    "Apache-2.0; test items of Seal-Tools: no score on it may be reported after training on them"
)
#: A value that is the k-th response of the calls so far, counted over all of them.
_RESPONSE = re.compile(r"API_call_\d+")
_RUN = re.compile(r"[^\W_]+")


def read_sealtools(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield the items whose calls are a valid plan; its toolbox is what was retrieved for it.

    Raises:
        InputError: A file is missing, cannot be read, or has another form.
    """
    if not (there := [path / name for name in FILES if (path / name).is_file()]):
        raise InputError(f"{path} has none of {list(FILES)}. Give the folder that holds them.")
    if not (path / TOOLS).is_file():
        raise InputError(f"{path / TOOLS} does not exist. The tools of {there[0].name} are in it.")
    declared = {
        text_of(tool, "api_name", f"{path / TOOLS}, line {number}"): tool
        for number, tool in read_json_lines(path / TOOLS)
    }
    for file in there:
        for number, record in read_json_lines(file):
            place = f"{file}, line {number}"
            id_ = f"sealtools:{text_of(record, 'id', place)}"
            question, calls = text_of(record, "query", place), list_of(record, "calling", place)
            shown = list_of(record, "retrieved_apis", place)
            try:
                made = list(_calls(calls, declared))
                if any(
                    _made_up(value, question) for one in made for value in one.arguments.values()
                ):
                    # Some items have values that the question was never given.
                    raise Unfit("a text that has nothing of the question")
                names = dict.fromkeys([*map(str, shown), *(call.tool for call in made)])
                toolbox = toolbox_of(
                    _function(declared[name]) for name in sorted(names) if name in declared
                )
                query = planned(id_, question, toolbox, made, "sealtools")
                source = f"sealtools:{file.name}:{number}"
                yield planned_instruction(id_, source, LICENCE, query)
            except Unfit as unfit:
                refuse(str(unfit))
            except PlanError:
                refuse("a plan that breaks a static check")


def _calls(calling: list[Any], declared: Mapping[str, Any]) -> Iterator[Call]:
    responses: dict[str, StepRef] = {}
    for step, call in enumerate(calling, 1):
        if not isinstance(call, Mapping) or not isinstance(call.get("parameters"), Mapping):
            raise Unfit("a golden call has another form")
        if call.get("api") not in declared:
            raise Unfit("a call of a tool that is not declared")
        given = call["parameters"].items()
        yield Call(call["api"], {str(key): _resolved(value, responses) for key, value in given})
        fields = declared[call["api"]].get("responses") or {}
        marks = call.get("responses") or ()
        responses |= {mark: StepRef(step, name) for mark, name in zip(marks, fields, strict=False)}


def _resolved(value: Any, responses: Mapping[str, StepRef]) -> Any:
    if not isinstance(value, str) or not _RESPONSE.search(value):
        return value
    if value not in responses:
        raise Unfit("a reference to a response that is not there, or inside a text")
    return responses[value]


def _made_up(value: Any, question: str) -> bool:
    if not isinstance(value, str):
        return False
    asked = question.casefold()
    return not any(run in asked for run in _RUN.findall(value.casefold()))


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool as JSON Schema declares functions."""
    return {
        "name": tool["api_name"],
        "description": tool.get("api_description", ""),
        "parameters": {
            "properties": tool.get("parameters") or {},
            "required": tool.get("required") or [],
        },
        "response": {"properties": tool.get("responses") or {}},
    }
