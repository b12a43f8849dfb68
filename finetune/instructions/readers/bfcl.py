"""The Berkeley Function Calling Leaderboard (Patil et al. 2025) as plans of its functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from casewright.errors import InputError, PlanError
from casewright.finetune.instructions.instruction import Instruction, planned_instruction
from casewright.finetune.instructions.readers.bfcl_dialogues import MULTI_TURN, read_first_turns
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
from casewright.planner import is_span

PREFIX, GOLD = "BFCL_v4_", "possible_answer"
LICENCE = "Apache-2.0; test items of BFCL: no score on it may be reported after training on them"
IRRELEVANCE = "irrelevance"
#: The categories that are read; of the dialogues, the first turn.
CATEGORIES = ("multiple", "parallel_multiple", "live_parallel_multiple", IRRELEVANCE, MULTI_TURN)


def read_bfcl(path: Path, refuse: Refuse) -> Iterator[Instruction]:
    """Yield the records whose calls are a valid plan; where no function fits, ``no_evidence()``.

    Of each argument's allowed values the first is taken. Where an empty text is among them, the
    argument may be left out, which is what the set means by it: then a value is taken that stands
    in the question, and none where none does, since the first is often a tool's own default.

    Args:
        path: The folder, or one category's file, with the gold in the folder possible_answer.
        refuse: Told why a record makes none.

    Raises:
        InputError: A file cannot be read, has another form, or lacks its gold.
    """
    for file in _files(path):
        category = file.stem.removeprefix(PREFIX)
        if category == IRRELEVANCE:
            gold: Mapping[str, Any] = {}
        else:
            gold = _gold(file)
        if category == MULTI_TURN:
            yield from read_first_turns(file, gold, LICENCE, refuse)
        else:
            yield from _read_file(file, category, gold, refuse)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        if path.stem.removeprefix(PREFIX) not in CATEGORIES:
            raise InputError(
                f"{path} is none of the files that are read: "
                f"{', '.join(f'{PREFIX}{name}.json' for name in CATEGORIES)}."
            )
        return [path]
    found = [path / f"{PREFIX}{name}.json" for name in CATEGORIES]
    if not (there := [file for file in found if file.is_file()]):
        raise InputError(
            f"{path} has none of {[file.name for file in found]}. Give the leaderboard's data "
            "folder, or one of these files."
        )
    return there


def _gold(file: Path) -> Mapping[str, Any]:
    answers = file.parent / GOLD / file.name
    if not answers.is_file():
        raise InputError(
            f"{answers} does not exist. The answers to {file.name} stand in the folder {GOLD} "
            "beside it."
        )
    return {
        text_of(record, "id", f"{answers}, line {number}"): record.get("ground_truth")
        for number, record in read_json_lines(answers)
    }


def _read_file(
    file: Path, category: str, gold: Mapping[str, Any], refuse: Refuse
) -> Iterator[Instruction]:
    for number, record in read_json_lines(file):
        place = f"{file}, line {number}"
        key = text_of(record, "id", place)
        question = _question(list_of(record, "question", place), place)
        functions = list_of(record, "function", place)
        if category != IRRELEVANCE and key not in gold:
            raise InputError(f"{place}: there is no answer with the id {key!r} in {GOLD}.")
        id_ = f"bfcl:{key}"
        source = f"bfcl:{file.name}:{number}"
        try:
            calls = [] if category == IRRELEVANCE else _calls(gold[key], question)
            made = planned(id_, question, toolbox_of(functions), calls, f"bfcl/{category}")
            yield planned_instruction(id_, source, LICENCE, made)
        except Unfit as unfit:
            refuse(str(unfit))
        except PlanError:
            refuse("a plan that breaks a static check")


def _question(turns: list[Any], place: str) -> str:
    first = turns[0] if turns else None
    said = [m for m in first if isinstance(m, Mapping)] if isinstance(first, list) else []
    texts = [m["content"] for m in said if isinstance(m.get("content"), str)]
    if not texts:
        raise InputError(f"{place}: question is no list of turns of {{role, content}} messages.")
    return "\n\n".join(unquoted(text) for text in texts)


def _calls(gold: Any, question: str) -> list[Call]:
    return [_call(one, question) for one in gold or [None]]


def _call(gold: Any, question: str) -> Call:
    if not isinstance(gold, Mapping) or len(gold) != 1:
        raise Unfit("a golden call has another form")
    ((name, allowed),) = gold.items()
    if not isinstance(allowed, Mapping):
        raise Unfit("a golden call has another form")
    given = {}
    for argument, values in allowed.items():
        if not isinstance(values, list) or not values:
            raise Unfit("a golden call has another form")
        given[str(argument)] = _value(values, question)
    return Call(str(name), given)


def _value(allowed: list[Any], question: str) -> Any:
    if "" not in allowed:
        return allowed[0]
    return next((value for value in allowed if _stands_in(value, question)), "")


def _stands_in(value: Any, question: str) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_stands_in(item, question) for item in value)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return False
    return is_span(value if isinstance(value, str) else f"{value:g}", question)
