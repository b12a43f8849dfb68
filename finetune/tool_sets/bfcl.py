"""Reads the Berkeley Function Calling Leaderboard (Patil et al. 2025) as queries with plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.finetune.records import Record, read_records
from casewright.finetune.tool_sets import calls
from casewright.planner import is_span

#: The start of file names, the folder of answers, and the category of unanswerable questions.
FILE_PREFIX, ANSWER_FOLDER, IRRELEVANCE = "BFCL_v4_", "possible_answer", "irrelevance"
#: The single-turn categories with several functions to choose from; other files are refused.
CATEGORIES = ("multiple", "parallel_multiple", "live_parallel_multiple", IRRELEVANCE)


class _Message(Record):
    content: str


class _Item(Record):
    id: str
    question: list[list[_Message]]
    function: Sequence[Any] = ()


class _Answer(Record):
    id: str
    ground_truth: Any = None


def read_bfcl(path: Path) -> Iterator[calls.Conversion]:
    """Yield a conversion (a function) of each record in a folder, or in one category's file.

    The answers, in the folder ``possible_answer``, list allowed values of arguments. An argument
    is optional if the empty text is an allowed value. A required argument gets its first value. An
    optional argument gets its first value that is a span of the question, or is left out, since
    its first value is often the default. If no function fits, the plan is ``no_evidence()``.
    """
    file_names = [f"{FILE_PREFIX}{category}.json" for category in CATEGORIES]
    for file in calls.files_of(path, *file_names):
        if file.name not in file_names:
            raise InputError(f"{path} is none of the files that are read: {', '.join(file_names)}.")
        category, answers = file.stem.removeprefix(FILE_PREFIX), _read_answers(file)
        for number, item in read_records(file, _Item):
            location = f"{file}, line {number}"
            if not item.question or not item.question[0]:
                raise InputError(f"{location}: question has no turn with a message.")
            if category != IRRELEVANCE and item.id not in answers:
                raise InputError(
                    f"{location}: there is no answer with the id {item.id!r} in {ANSWER_FOLDER}."
                )
            # An answer without calls becomes ``[None]``, which ``_gold_call`` refuses.
            answer = [] if category == IRRELEVANCE else answers[item.id] or [None]
            yield partial(_convert, item, category, answer)


def _read_answers(file: Path) -> Mapping[str, Any]:
    """Return the answers to a file's records by id; none for the category ``irrelevance``."""
    if file.stem == FILE_PREFIX + IRRELEVANCE:
        return {}
    answer_file = file.parent / ANSWER_FOLDER / file.name
    if not answer_file.is_file():
        raise InputError(
            f"{answer_file} does not exist. The answers to {file.name} belong in the folder "
            f"{ANSWER_FOLDER} beside it."
        )
    return {answer.id: answer.ground_truth for _, answer in read_records(answer_file, _Answer)}


def _convert(item: _Item, category: str, answer: Sequence[Any]) -> calls.Query:
    question = "\n\n".join(calls.unquoted(message.content) for message in item.question[0])
    gold_calls = [_gold_call(entry, question) for entry in answer]
    toolbox = calls.make_toolbox(map(calls.function_tool, item.function))
    return calls.query_with_plan(
        f"bfcl:{item.id}", question, toolbox, gold_calls, f"bfcl/{category}"
    )


def _gold_call(recorded_call: Any, question: str) -> calls.GoldCall:
    """Return the call of an entry ``{function: {argument: allowed values}}`` of an answer."""
    if not isinstance(recorded_call, Mapping) or len(recorded_call) != 1:
        raise calls.Unfit(calls.OTHER_FORM)
    ((name, allowed),) = recorded_call.items()
    if not isinstance(allowed, Mapping) or not all(
        isinstance(values, list) and values for values in allowed.values()
    ):
        raise calls.Unfit(calls.OTHER_FORM)
    arguments = {str(key): _choose_value(values, question) for key, values in allowed.items()}
    return calls.GoldCall(str(name), arguments)


def _choose_value(allowed: list[Any], question: str) -> Any:
    if "" not in allowed:
        return allowed[0]
    return next((value for value in allowed if _is_in_question(value, question)), "")


def _is_in_question(value: Any, question: str) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_is_in_question(item, question) for item in value)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return False
    return is_span(value if isinstance(value, str) else f"{value:g}", question)
