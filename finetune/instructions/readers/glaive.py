"""Tool-calling dialogues in the form of Glaive's set: plans, and answers in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from casewright.finetune.instructions.instruction import Instruction, PlannedQuery
from casewright.finetune.instructions.readers.calls import (
    FORM,
    NO_JSON,
    Call,
    instruction_of,
    planned,
)
from casewright.finetune.instructions.readers.functions import toolbox_of
from casewright.finetune.instructions.readers.records import Refuse, Unfit, files_of
from casewright.finetune.records import Record, read_records
from casewright.planner.request import Turn
from casewright.tools import NO_EVIDENCE, Toolbox

FILE = "glaive_toolcall_en_demo.json"
_PERSON, _MODEL, _CALL = "human", "gpt", "function_call"


def _listed(tools: Any) -> Any:
    return json.loads(tools) if isinstance(tools, str) and tools.strip() else tools or []


class _Said(Record):
    by: str = Field(alias="from")
    value: str


class _Dialogue(Record):
    conversations: list[_Said]
    tools: Annotated[Sequence[Any], BeforeValidator(_listed)] = ()


def read_glaive(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield what ``{conversations: [{from, value}], tools: JSON}`` holds.

    A call becomes a plan, with the turns before it as history. Where the first question is answered
    without a call, the answer is a text: below the tools, where there are any.

    Raises:
        InputError: The file cannot be read, or has another form.
    """
    (file,) = files_of(path, FILE)
    for number, record in read_records(file, _Dialogue):
        source = f"glaive:{file.name}:{number}"
        try:
            toolbox = toolbox_of(record.tools)
        except Unfit as unfit:
            refuse(f"toolbox: {unfit}")
            continue
        if answered := _first_answer(record.conversations, toolbox):
            yield Instruction(f"glaive:{number}.0", source, *answered)
        for index, (history, question, call) in enumerate(_called(record.conversations), 1):
            id_ = f"glaive:{number}.{index}"
            made = partial(_planned, id_, question, toolbox, call, history)
            yield from instruction_of(id_, source, made, refuse)


def _first_answer(turns: Sequence[_Said], toolbox: Toolbox) -> tuple[str, str] | None:
    if [turn.by for turn in turns[:2]] != [_PERSON, _MODEL] or not all(t.value for t in turns[:2]):
        return None
    asked, answer = turns[0].value, turns[1].value
    shown = [tool for tool in toolbox if tool.name != NO_EVIDENCE.name]
    if shown:
        listed = "\n".join(f"- {tool.signature()}\n  {tool.description}" for tool in shown)
        asked = f"You are an assistant with these tools:\n{listed}\n\n{asked}"
    return asked, answer


def _called(turns: Sequence[_Said]) -> Iterator[tuple[list[Turn], str, str]]:
    """Yield the turns before each question that is answered by a call, the question, the call."""
    history: list[Turn] = []
    question = ""
    for turn in turns:
        if turn.by == _PERSON:
            question = turn.value
        elif turn.by == _CALL and question:
            yield list(history), question, turn.value
        elif turn.by == _MODEL and question:
            history.append({"question": question, "answer": turn.value})
            question = ""


def _planned(
    id_: str, question: str, toolbox: Toolbox, text: str, history: Sequence[Turn]
) -> PlannedQuery:
    try:
        read = json.loads(text)
        name = read.get("name") if isinstance(read, dict) else None
        given = read.get("arguments") if isinstance(read, dict) else None
        given = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        raise Unfit(NO_JSON) from None
    if not isinstance(name, str) or not isinstance(given, dict):
        raise Unfit(FORM)
    return planned(id_, question, toolbox, [Call(name, given)], "glaive", history)
