"""First turns of the Berkeley Function Calling Leaderboard's dialogues.

A dialogue runs on a state that calls change: files, orders, a car. Only its first turn is asked
before anything has happened, and only where every value that is called with stands in the question
can the calls be written before the first of them has run.
"""

from __future__ import annotations

import ast
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
    unquoted,
)
from casewright.finetune.instructions.readers.refusal import Unfit
from casewright.tools import Toolbox, alias

MULTI_TURN, DOCUMENTS = "multi_turn_base", "multi_turn_func_doc"
#: The class of a stateful API, and the file with its functions.
_FILES = {
    "GorillaFileSystem": "gorilla_file_system.json",
    "MathAPI": "math_api.json",
    "MessageAPI": "message_api.json",
    "TicketAPI": "ticket_api.json",
    "TradingBot": "trading_bot.json",
    "TravelAPI": "travel_booking.json",
    "TwitterAPI": "posting_api.json",
    "VehicleControlAPI": "vehicle_control.json",
}


def read_first_turns(
    file: Path, gold: Mapping[str, Any], licence: str, refuse: Refuse
) -> Iterator[Instruction]:
    """Yield the first turns that can be planned from their question alone.

    Raises:
        InputError: A file cannot be read, has another form, or the functions' files are missing.
    """
    functions: dict[str, list[Mapping[str, Any]]] = {}
    for number, record in read_json_lines(file):
        place = f"{file}, line {number}"
        key = text_of(record, "id", place)
        question = _first(list_of(record, "question", place), place)
        for name in (classes := list_of(record, "involved_classes", place)):
            if name not in functions:
                functions[name] = _functions(file.parent, name, place)
        hidden = record.get("excluded_function") or ()
        try:
            declared = [one for name in classes for one in functions[name]]
            toolbox = toolbox_of(one for one in declared if one.get("name") not in hidden)
            calls = _calls(gold.get(key), toolbox, question)
            made = planned(f"bfcl:{key}", question, toolbox, calls, f"bfcl/{MULTI_TURN}")
            yield planned_instruction(f"bfcl:{key}", f"bfcl:{file.name}:{number}", licence, made)
        except Unfit as unfit:
            refuse(f"dialogue: {unfit}")
        except PlanError:
            refuse("dialogue: a plan that breaks a static check")


def _functions(folder: Path, name: Any, place: str) -> list[Mapping[str, Any]]:
    if name not in _FILES:
        raise InputError(f"{place}: no file is known for the functions of {name!r}.")
    document = folder / DOCUMENTS / _FILES[name]
    if not document.is_file():
        raise InputError(
            f"{document} does not exist. The functions of {name} stand in the folder {DOCUMENTS} "
            f"beside {MULTI_TURN}."
        )
    return [record for _, record in read_json_lines(document)]


def _first(turns: list[Any], place: str) -> str:
    first = turns[0] if turns else None
    message = first[0] if isinstance(first, list) and first else None
    if not isinstance(message, Mapping) or not isinstance(message.get("content"), str):
        raise InputError(f"{place}: question is no list of turns of {{role, content}} messages.")
    return unquoted(message["content"])


def _calls(gold: Any, toolbox: Toolbox, question: str) -> list[Call]:
    if not isinstance(gold, list) or not gold or not isinstance(gold[0], list):
        raise Unfit("a golden call has another form")
    if not gold[0]:
        raise Unfit("the first turn calls nothing")
    return [_call(text, toolbox, question) for text in gold[0]]


def _call(text: Any, toolbox: Toolbox, question: str) -> Call:
    """Return the call that is written as one of Python; nothing of it is run."""
    try:
        written = ast.parse(text, mode="eval").body
        if not isinstance(written, ast.Call) or not isinstance(written.func, ast.Name):
            raise Unfit("a golden call has another form")
        positional = [ast.literal_eval(value) for value in written.args]
        given = {str(one.arg): ast.literal_eval(one.value) for one in written.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError):
        raise Unfit("a golden call has another form") from None
    name = written.func.id
    if alias(name) not in toolbox:
        raise Unfit("a call of a tool that is not declared")
    names = [one.name for one in toolbox[alias(name)].parameters]
    arguments = {**dict(zip(names, positional, strict=False)), **given}
    if not all(_stands_in(value, question) for value in arguments.values()):
        raise Unfit("a value that the first question does not hold")
    return Call(name, arguments)


def _stands_in(value: Any, question: str) -> bool:
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, (list, tuple)):
        return all(_stands_in(item, question) for item in value)
    asked = question.casefold().replace(",", "")
    return str(value).casefold().replace(",", "").removesuffix(".0") in asked
