"""Tool-calling dialogues in the form of Glaive's set: plans, and answers in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from casewright.errors import InputError, PlanError
from casewright.finetune.instructions.instruction import Instruction, planned_instruction
from casewright.finetune.instructions.readers.calls import Call, planned
from casewright.finetune.instructions.readers.functions import toolbox_of
from casewright.finetune.instructions.readers.records import (
    Refuse,
    list_of,
    one_file,
    read_json_list,
)
from casewright.finetune.instructions.readers.refusal import Unfit
from casewright.planner.request import Turn
from casewright.tools import NO_EVIDENCE, Toolbox

FILE = "glaive_toolcall_en_demo.json"
LICENCE = "Apache-2.0"
_PERSON, _MODEL, _CALL = "human", "gpt", "function_call"


def read_glaive(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield what ``{conversations: [{from, value}], tools: JSON}`` holds.

    A call becomes a plan, with the turns before it as history. Where the first question is answered
    without a call, the answer is a text: below the tools, where there are any.

    Raises:
        InputError: The file cannot be read, or has another form.
    """
    file = one_file(path, FILE)
    for number, record in read_json_list(file):
        place = f"{file}, record {number}"
        turns = [_turn(turn, place) for turn in list_of(record, "conversations", place)]
        source = f"glaive:{file.name}:{number}"
        try:
            toolbox = toolbox_of(_functions(record.get("tools"), place))
        except Unfit as unfit:
            refuse(f"toolbox: {unfit}")
            continue
        if answered := _first_answer(turns, toolbox):
            yield Instruction(f"glaive:{number}.0", source, LICENCE, *answered)
        for index, (history, question, call) in enumerate(_called(turns), 1):
            id_ = f"glaive:{number}.{index}"
            try:
                made = planned(id_, question, toolbox, [_call(call)], "glaive", history)
                yield planned_instruction(id_, source, LICENCE, made)
            except Unfit as unfit:
                refuse(str(unfit))
            except PlanError:
                refuse("a plan that breaks a static check")


def _turn(turn: Any, place: str) -> tuple[str, str]:
    if isinstance(turn, Mapping):
        who, said = turn.get("from"), turn.get("value")
        if isinstance(who, str) and isinstance(said, str):
            return who, said.strip()
    raise InputError(f"{place}: a conversation's turn is no {{from, value}} of texts.")


def _functions(text: Any, place: str) -> list[Any]:
    try:
        read = json.loads(text) if isinstance(text, str) and text.strip() else text or []
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: tools is no JSON list: {error}.") from error
    if not isinstance(read, list):
        raise InputError(f"{place}: tools is no JSON list.")
    return read


def _first_answer(turns: Sequence[tuple[str, str]], toolbox: Toolbox) -> tuple[str, str] | None:
    if len(turns) < 2 or [who for who, _ in turns[:2]] != [_PERSON, _MODEL]:
        return None
    asked, answer = turns[0][1], turns[1][1]
    shown = [tool for tool in toolbox if tool.name != NO_EVIDENCE.name]
    if shown:
        listed = "\n".join(f"- {tool.signature()}\n  {tool.description}" for tool in shown)
        asked = f"You are an assistant with these tools:\n{listed}\n\n{asked}"
    return (asked, answer) if turns[0][1] and answer else None


def _called(turns: Sequence[tuple[str, str]]) -> Iterator[tuple[list[Turn], str, str]]:
    """Yield the turns before each question that is answered by a call, the question, the call."""
    history: list[Turn] = []
    question = ""
    for who, said in turns:
        if who == _PERSON:
            question = said
        elif who == _CALL and question:
            yield list(history), question, said
        elif who == _MODEL and question:
            history.append({"question": question, "answer": said})
            question = ""


def _call(text: str) -> Call:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        raise Unfit("a golden call's arguments are no JSON") from None
    name = read.get("name") if isinstance(read, dict) else None
    given = read.get("arguments") if isinstance(read, dict) else None
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            raise Unfit("a golden call's arguments are no JSON") from None
    if not isinstance(name, str) or not isinstance(given, dict):
        raise Unfit("a golden call has another form")
    return Call(name, given)
