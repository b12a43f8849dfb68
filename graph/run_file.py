"""Files of saved runs. Each has a question and its answer, with plan, steps and evidence.

A file does not contain the context, history or scope. The steps include the tools' arguments and
results.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from casewright.errors import InputError, cleaned
from casewright.graph.answer import Answer
from casewright.graph.json_text import json_text
from casewright.graph.run_check import checked_answer
from casewright.stores.whole_file import write_whole

#: Version of the format; it is increased if older code cannot read new files.
FORMAT = 1
KIND = "casewright run"


@dataclass(frozen=True, slots=True)
class SavedRun:
    """A saved run: its answer, and its question if the file has it."""

    answer: Answer
    question: str = ""


class _NotFiniteError(Exception):
    """Raised for a number that is too large; the file is then a damaged run."""


def save_run(file: Path, answer: Answer, question: str = "") -> None:
    """Save a run in a file, atomically.

    Raise ``InputError`` if the file cannot be written, or JSON cannot hold the answer.
    """
    question_field = {"question": question} if question else {}
    data = {"format": FORMAT, "kind": KIND, **question_field, "answer": answer.to_json()}
    try:
        text = json_text(data, allow_nan=False, indent=1)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"The run cannot be saved in {file}: JSON cannot hold it ({error}). Let tools return "
            "values that JSON can hold."
        ) from error
    try:
        write_whole(file, text + "\n")
    except OSError as error:
        raise InputError(
            f"The run cannot be saved in {file}: {error.strerror}. Give a file that can be written."
        ) from error


def read_run(file: Path) -> SavedRun:
    """Read a run that ``save_run`` saved.

    Raise ``InputError`` if the file cannot be read, is not a saved run, is damaged, or has another
    version of the format.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{file} cannot be read: {error.strerror}. Give a file of casewright ask --save."
        ) from error
    except UnicodeDecodeError as error:
        raise _not_a_run_error(file, error) from error
    return parse_run(text, str(file))


def parse_run(text: str, name: str) -> SavedRun:
    """Read a run from a file's text as ``read_run`` does; error messages show ``name``."""
    try:
        data = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite_float)
    except _NotFiniteError as error:
        raise _damaged_error(name, str(error)) from None
    except (ValueError, RecursionError) as error:
        raise _not_a_run_error(name, error) from error
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise InputError(f"{name} is not a saved run. Give a file of casewright ask --save.")
    version = data.get("format")
    # True and 1.0 equal 1, but the version is an integer.
    if type(version) is not int or version != FORMAT:
        raise InputError(
            f"{name} is a saved run of format {str(version)[:20]!r}; this Casewright "
            f"reads {FORMAT}. Open it with the Casewright that saved it, or ask again."
        )
    question = data.get("question", "")
    if not isinstance(question, str):
        raise _damaged_error(name, "its question is not a text")
    try:
        return SavedRun(checked_answer(data.get("answer")), question)
    except RecursionError:
        raise _damaged_error(name, "it is nested too deeply") from None
    except ValueError as error:
        raise _damaged_error(name, str(error)) from None


def _not_a_run_error(name: object, error: Exception) -> InputError:
    return InputError(
        f"{name} is not a saved run: its JSON is invalid or cut ({cleaned(str(error), 120)}). "
        "Give a file of casewright ask --save."
    )


def _damaged_error(name: str, reason: str) -> InputError:
    return InputError(f"{name} is a damaged run: {cleaned(reason, 200)}. Save the run again.")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite_float(digits: str) -> Any:
    if not math.isfinite(value := float(digits)):
        raise _NotFiniteError(f"the number {digits[:20]} is too large")
    return value
