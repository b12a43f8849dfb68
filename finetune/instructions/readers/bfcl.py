"""The Berkeley Function Calling Leaderboard (Patil et al. 2025) as plans of its functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from casewright.errors import InputError
from casewright.finetune.instructions.instruction import Instruction, PlannedQuery
from casewright.finetune.instructions.readers.calls import (
    FORM,
    NO_TOOL,
    Call,
    Refuse,
    Unfit,
    files_of,
    instruction_of,
    planned,
    toolbox_of,
    unquoted,
)
from casewright.finetune.records import Record, read_records
from casewright.planner import is_span
from casewright.tools import Toolbox, alias

PREFIX, GOLD, DOCUMENTS = "BFCL_v4_", "possible_answer", "multi_turn_func_doc"
IRRELEVANCE, MULTI_TURN = "irrelevance", "multi_turn_base"
#: The categories that are read; of the dialogues, the first turn.
CATEGORIES = ("multiple", "parallel_multiple", "live_parallel_multiple", IRRELEVANCE, MULTI_TURN)
#: The class of a dialogue's stateful API, and the file with its functions.
_APIS = {
    "GorillaFileSystem": "gorilla_file_system.json",
    "MathAPI": "math_api.json",
    "MessageAPI": "message_api.json",
    "TicketAPI": "ticket_api.json",
    "TradingBot": "trading_bot.json",
    "TravelAPI": "travel_booking.json",
    "TwitterAPI": "posting_api.json",
    "VehicleControlAPI": "vehicle_control.json",
}


class _Message(Record):
    content: str


class _Item(Record):
    id: str
    question: list[list[_Message]]
    function: Sequence[Any] = ()
    involved_classes: Sequence[str] = ()
    excluded_function: Sequence[str] = ()

    def asked(self, place: str) -> list[str]:
        """Return what the first turn says."""
        if not self.question or not self.question[0]:
            raise InputError(f"{place}: question has no turn with a message.")
        return [unquoted(message.content) for message in self.question[0]]


class _Answer(Record):
    id: str
    ground_truth: Any = None


class _Function(Record):
    model_config = ConfigDict(extra="allow")

    name: str


def read_bfcl(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield the records whose calls are a valid plan; where no function fits, ``no_evidence()``.

    Of each argument's allowed values the first is taken. Where an empty text is among them, the
    argument may be left out, which is what the set means by it: then a value is taken that stands
    in the question, and none where none does, since the first is often a tool's own default.

    A dialogue runs on a state that calls change. Only its first turn is asked before anything has
    happened, and only where every value that is called with stands in the question can the calls
    be written before the first of them has run.

    Args:
        path: The folder, or one category's file, with the gold in the folder possible_answer.
        refuse: Told why a record makes none.

    Raises:
        InputError: A file cannot be read, has another form, or lacks its gold or its functions.
    """
    names = [f"{PREFIX}{name}.json" for name in CATEGORIES]
    for file in files_of(path, *names):
        if file.name not in names:
            raise InputError(f"{path} is none of the files that are read: {', '.join(names)}.")
        category = file.stem.removeprefix(PREFIX)
        gold = {} if category == IRRELEVANCE else _gold(file)
        yield from _read_file(file, category, gold, refuse)


def _gold(file: Path) -> Mapping[str, Any]:
    answers = file.parent / GOLD / file.name
    if not answers.is_file():
        raise InputError(
            f"{answers} does not exist. The answers to {file.name} stand in the folder {GOLD} "
            "beside it."
        )
    return {answer.id: answer.ground_truth for _, answer in read_records(answers, _Answer)}


def _read_file(
    file: Path, category: str, gold: Mapping[str, Any], refuse: Refuse
) -> Iterator[Instruction]:
    functions: dict[str, list[dict[str, Any]]] = {}
    for number, item in read_records(file, _Item):
        location = f"{file}, line {number}"
        said = item.asked(location)
        for name in item.involved_classes:
            if name not in functions:
                functions[name] = _functions(file.parent, name, location)
        if category not in (IRRELEVANCE, MULTI_TURN) and item.id not in gold:
            raise InputError(f"{location}: there is no answer with the id {item.id!r} in {GOLD}.")
        answer = gold.get(item.id)

        def made(item: _Item = item, said: list[str] = said, answer: Any = answer) -> PlannedQuery:
            if category == MULTI_TURN:
                declared = [entry for name in item.involved_classes for entry in functions[name]]
                hidden = item.excluded_function
                toolbox = toolbox_of(entry for entry in declared if entry["name"] not in hidden)
                question, calls = said[0], _first_calls(answer, toolbox, said[0])
            else:
                question, toolbox = "\n\n".join(said), toolbox_of(item.function)
                listed = [] if category == IRRELEVANCE else answer or [None]
                calls = [_call(entry, question) for entry in listed]
            return planned(f"bfcl:{item.id}", question, toolbox, calls, f"bfcl/{category}")

        of = "dialogue: " if category == MULTI_TURN else ""
        source = f"bfcl:{file.name}:{number}"
        yield from instruction_of(f"bfcl:{item.id}", source, made, refuse, of)


def _functions(folder: Path, name: str, place: str) -> list[dict[str, Any]]:
    if name not in _APIS:
        raise InputError(f"{place}: no file is known for the functions of {name!r}.")
    document = folder / DOCUMENTS / _APIS[name]
    if not document.is_file():
        raise InputError(
            f"{document} does not exist. The functions of {name} stand in the folder {DOCUMENTS} "
            f"beside {MULTI_TURN}."
        )
    return [function.model_dump() for _, function in read_records(document, _Function)]


def _call(gold: Any, question: str) -> Call:
    if not isinstance(gold, Mapping) or len(gold) != 1:
        raise Unfit(FORM)
    ((name, allowed),) = gold.items()
    if not isinstance(allowed, Mapping):
        raise Unfit(FORM)
    if not all(isinstance(values, list) and values for values in allowed.values()):
        raise Unfit(FORM)
    return Call(str(name), {str(key): _value(values, question) for key, values in allowed.items()})


def _value(allowed: list[Any], question: str) -> Any:
    if "" not in allowed:
        return allowed[0]
    return next((value for value in allowed if _spans(value, question)), "")


def _spans(value: Any, question: str) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_spans(item, question) for item in value)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return False
    return is_span(value if isinstance(value, str) else f"{value:g}", question)


def _first_calls(gold: Any, toolbox: Toolbox, question: str) -> list[Call]:
    if not isinstance(gold, list) or not gold or not isinstance(gold[0], list):
        raise Unfit(FORM)
    if not gold[0]:
        raise Unfit("the first turn calls nothing")
    return [_written_call(text, toolbox, question) for text in gold[0]]


def _written_call(text: Any, toolbox: Toolbox, question: str) -> Call:
    """Return the call that is written as one of Python; nothing of it is run."""
    try:
        written = ast.parse(text, mode="eval").body
        if not isinstance(written, ast.Call) or not isinstance(written.func, ast.Name):
            raise Unfit(FORM)
        positional = [ast.literal_eval(value) for value in written.args]
        given = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in written.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError):
        raise Unfit(FORM) from None
    name = written.func.id
    if alias(name) not in toolbox:
        raise Unfit(NO_TOOL)
    names = [parameter.name for parameter in toolbox[alias(name)].parameters]
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
