"""Reads Seal-Tools (Wu et al. 2024, arXiv:2405.08355) as queries with plans and toolboxes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.finetune.records import Record, read_records
from casewright.finetune.tool_sets import calls
from casewright.planner import StepRef

TOOL_FILE = "tool.jsonl"
QUERY_FILES = ("dev-dev.jsonl", "test_in_domain-dev.jsonl", "test_out_domain-dev.jsonl")
#: A label that stands for a field of an earlier call's response.
_RESPONSE_LABEL = re.compile(r"API_call_\d+")
_WORD_PATTERN = re.compile(r"[^\W_]+")


class _Tool(Record):
    api_name: str
    api_description: str = ""
    parameters: dict[str, Any] | None = None
    required: list[str] | None = None
    responses: dict[str, Any] | None = None

    def to_function(self) -> dict[str, Any]:
        return {
            "name": self.api_name,
            "description": self.api_description,
            "parameters": {"properties": self.parameters or {}, "required": self.required or []},
            "response": {"properties": self.responses or {}},
        }


class _Item(Record):
    id: str
    query: str
    calling: list[Any]
    retrieved_apis: list[str]


def read_sealtools(path: Path) -> Iterator[calls.Conversion]:
    """Yield a conversion of each record in a folder, or in a file beside ``tool.jsonl``."""
    files = calls.files_of(path, *QUERY_FILES)
    tool_file = files[0].parent / TOOL_FILE
    if not tool_file.is_file():
        raise InputError(f"{tool_file} does not exist. {files[0].name} needs the tools in it.")
    declared = {tool.api_name: tool for _, tool in read_records(tool_file, _Tool)}
    for file in files:
        for _, item in read_records(file, _Item):
            yield partial(_convert, item, declared)


def _convert(item: _Item, declared: Mapping[str, _Tool]) -> calls.Query:
    gold_calls = list(_gold_calls(item.calling, declared))
    # Some items have the values of another question, and are refused.
    values = (value for call in gold_calls for value in call.arguments.values())
    if any(_is_foreign(value, item.query) for value in values):
        raise calls.Unfit("a text that has nothing of the question")
    # The toolbox has the tools that the set's authors retrieved for the query, and the called ones.
    names = sorted({*item.retrieved_apis, *(call.tool for call in gold_calls)})
    functions = [declared[name].to_function() for name in names if name in declared]
    toolbox = calls.make_toolbox(map(calls.function_tool, functions))
    return calls.query_with_plan(
        f"sealtools:{item.id}", item.query, toolbox, gold_calls, "sealtools"
    )


def _gold_calls(calling: Sequence[Any], declared: Mapping[str, _Tool]) -> Iterator[calls.GoldCall]:
    reference_by_label: dict[str, StepRef] = {}
    for step, call in enumerate(calling, 1):
        if not isinstance(call, Mapping) or not isinstance(call.get("parameters"), Mapping):
            raise calls.Unfit(calls.OTHER_FORM)
        if call.get("api") not in declared:
            raise calls.Unfit(calls.NO_TOOL)
        values = call["parameters"].items()
        arguments = {str(key): _resolve(value, reference_by_label) for key, value in values}
        yield calls.GoldCall(call["api"], arguments)
        fields = declared[call["api"]].responses or {}
        # The labels are in the order of the declared fields.
        pairs = zip(call.get("responses") or (), fields, strict=False)
        reference_by_label |= {label: StepRef(step, field) for label, field in pairs}


def _resolve(value: Any, reference_by_label: Mapping[str, StepRef]) -> Any:
    if not isinstance(value, str) or not _RESPONSE_LABEL.search(value):
        return value
    if value not in reference_by_label:
        raise calls.Unfit("a reference to a response that is not there, or inside a text")
    return reference_by_label[value]


def _is_foreign(value: Any, question: str) -> bool:
    """Return True if a value is a text, and the question contains none of its words."""
    words = _WORD_PATTERN.findall(str(value).casefold())
    return isinstance(value, str) and not any(word in question.casefold() for word in words)
