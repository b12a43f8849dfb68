"""The Berkeley Function Calling Leaderboard (Patil et al. 2025) as plans of its functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from casewright.errors import InputError
from casewright.finetune.records import Record, read_records
from casewright.finetune.tool_sets.calls import (
    FORM,
    NO_TOOL,
    GoldCall,
    Query,
    Refuse,
    Unfit,
    files_of,
    planned,
    query_of,
    toolbox_of,
    unfit_on,
    unquoted,
)
from casewright.planner import is_span
from casewright.tools import Toolbox, alias

PREFIX, GOLD, DOCUMENTS = "BFCL_v4_", "possible_answer", "multi_turn_func_doc"
IRRELEVANCE, MULTI_TURN = "irrelevance", "multi_turn_base"
#: The categories that are read; only the first turn of dialogues.
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


class _Answer(Record):
    id: str
    ground_truth: Any = None


class _Function(Record):
    model_config = ConfigDict(extra="allow")

    name: str


def read_bfcl(path: Path, refuse: Refuse) -> Iterator[Query]:
    """Yield the records whose calls are a valid plan; if no function fits, ``no_evidence()``.

    An argument gets the first of its allowed values. If the empty text is among them, the argument
    is optional: it gets the first value that is a span of the question, or none, since the first
    allowed value is often the tool's own default. Of a dialogue, only the first turn is read, and
    only if every value is in the question: later turns depend on a state that calls change.

    Args:
        path: The folder, or one category's file, with the gold in the folder possible_answer.
        refuse: Called with the reason for each record that is left out.

    Raises:
        InputError: A file cannot be read, has another form, or lacks its gold or its functions.
    """
    names = [f"{PREFIX}{name}.json" for name in CATEGORIES]
    for file in files_of(path, *names):
        if file.name not in names:
            raise InputError(f"{path} is none of the files that are read: {', '.join(names)}.")
        yield from _read_file(file, file.stem.removeprefix(PREFIX), refuse)


def _read_file(file: Path, category: str, refuse: Refuse) -> Iterator[Query]:
    gold: Mapping[str, Any] = {}
    if category != IRRELEVANCE:
        answers = _beside(file, GOLD, file.name, f"The answers to {file.name}")
        gold = {answer.id: answer.ground_truth for _, answer in read_records(answers, _Answer)}
    functions: dict[str, list[dict[str, Any]]] = {}
    for number, item in read_records(file, _Item):
        location = f"{file}, line {number}"
        if not item.question or not item.question[0]:
            raise InputError(f"{location}: question has no turn with a message.")
        for name in item.involved_classes:
            if name not in functions:
                functions[name] = _functions(file, name, location)
        if category not in (IRRELEVANCE, MULTI_TURN) and item.id not in gold:
            raise InputError(f"{location}: there is no answer with the id {item.id!r} in {GOLD}.")
        prefix = "dialogue: " if category == MULTI_TURN else ""
        make = partial(_planned, item, category, gold.get(item.id), functions)
        yield from query_of(make, refuse, prefix)


def _planned(
    item: _Item, category: str, answer: Any, functions: Mapping[str, Sequence[dict[str, Any]]]
) -> Query:
    messages = [unquoted(message.content) for message in item.question[0]]
    if category == MULTI_TURN:
        declared = [entry for name in item.involved_classes for entry in functions[name]]
        hidden = item.excluded_function
        toolbox = toolbox_of(entry for entry in declared if entry["name"] not in hidden)
        question, calls = messages[0], _first_calls(answer, toolbox, messages[0])
    else:
        question, toolbox = "\n\n".join(messages), toolbox_of(item.function)
        gold = [] if category == IRRELEVANCE else answer or [None]
        calls = [_call(entry, question) for entry in gold]
    return planned(f"bfcl:{item.id}", question, toolbox, calls, f"bfcl/{category}")


def _functions(file: Path, name: str, location: str) -> list[dict[str, Any]]:
    if name not in _APIS:
        raise InputError(f"{location}: no file is known for the functions of {name!r}.")
    document = _beside(file, DOCUMENTS, _APIS[name], f"The functions of {name}")
    return [function.model_dump() for _, function in read_records(document, _Function)]


def _beside(file: Path, folder: str, name: str, content: str) -> Path:
    path = file.parent / folder / name
    if not path.is_file():
        raise InputError(
            f"{path} does not exist. {content} belong in the folder {folder} beside {file.name}."
        )
    return path


def _call(gold: Any, question: str) -> GoldCall:
    if not isinstance(gold, Mapping) or len(gold) != 1:
        raise Unfit(FORM)
    ((name, allowed),) = gold.items()
    if not isinstance(allowed, Mapping) or not all(
        isinstance(values, list) and values for values in allowed.values()
    ):
        raise Unfit(FORM)
    return GoldCall(
        str(name), {str(key): _value(values, question) for key, values in allowed.items()}
    )


def _value(allowed: list[Any], question: str) -> Any:
    if "" not in allowed:
        return allowed[0]
    return next((value for value in allowed if _is_span(value, question)), "")


def _is_span(value: Any, question: str) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_is_span(item, question) for item in value)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return False
    return is_span(value if isinstance(value, str) else f"{value:g}", question)


def _first_calls(gold: Any, toolbox: Toolbox, question: str) -> list[GoldCall]:
    if not isinstance(gold, list) or not gold or not isinstance(gold[0], list):
        raise Unfit(FORM)
    if not gold[0]:
        raise Unfit("the first turn calls nothing")
    return [_python_call(text, toolbox, question) for text in gold[0]]


def _python_call(text: Any, toolbox: Toolbox, question: str) -> GoldCall:
    """Return a call that is written in Python; the text is parsed, never run."""
    with unfit_on(SyntaxError, ValueError, TypeError, RecursionError, reason=FORM):
        expression = ast.parse(text, mode="eval").body
        if not isinstance(expression, ast.Call) or not isinstance(expression.func, ast.Name):
            raise Unfit(FORM)
        positional = [ast.literal_eval(value) for value in expression.args]
        by_name = {str(word.arg): ast.literal_eval(word.value) for word in expression.keywords}
    name = expression.func.id
    if alias(name) not in toolbox:
        raise Unfit(NO_TOOL)
    names = [parameter.name for parameter in toolbox[alias(name)].parameters]
    arguments = {**dict(zip(names, positional, strict=False)), **by_name}
    if not all(_is_in(value, question) for value in arguments.values()):
        raise Unfit("a value that the first question does not hold")
    return GoldCall(name, arguments)


def _is_in(value: Any, question: str) -> bool:
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, (list, tuple)):
        return all(_is_in(item, question) for item in value)
    text = question.casefold().replace(",", "")
    return str(value).casefold().replace(",", "").removesuffix(".0") in text
