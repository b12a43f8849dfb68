"""A run as a file: its question and its answer with plan, steps and evidence, to look at later.

Beside the question the file holds what ``Answer`` holds and nothing else that the run was given:
neither context, history nor scope. What tools were called with and what they found is in the steps.
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

#: Of the file. Raised whenever older readers could not read a newer file.
FORMAT = 1
KIND = "casewright run"


@dataclass(frozen=True, slots=True)
class SavedRun:
    """A run that was saved.

    Attributes:
        answer: What it returned.
        question: What was asked; empty where the file does not say.
    """

    answer: Answer
    question: str = ""


class _NotFiniteError(Exception):
    pass


def save_run(file: Path, answer: Answer, question: str = "") -> None:
    """Save a run; the file is written whole or not at all.

    Args:
        file: It is made, or replaced.
        answer: What the run returned.
        question: What was asked.

    Raises:
        InputError: The file cannot be written, or the answer holds what JSON cannot.
    """
    asked = {"question": question} if question else {}
    whole = {"format": FORMAT, "kind": KIND, **asked, "answer": answer.to_json()}
    try:
        text = json_text(whole, allow_nan=False, indent=1)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"The run cannot be saved in {file}: JSON cannot hold it ({error}). Let tools return "
            "JSON-plain values."
        ) from error
    try:
        write_whole(file, text + "\n")
    except OSError as error:
        raise InputError(
            f"The run cannot be saved in {file}: {error.strerror}. Give a file that can be written."
        ) from error


def read_run(file: Path) -> SavedRun:
    """Read a run that ``save_run`` saved.

    Raises:
        InputError: The file cannot be read, is no saved run or a damaged one, or a newer Casewright
            wrote it.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{file} cannot be read: {error.strerror}. Give what casewright ask --save wrote."
        ) from error
    except UnicodeDecodeError as error:
        raise _no_run(file, error) from error
    return parse_run(text, str(file))


def parse_run(text: str, name: str) -> SavedRun:
    """Read a run from the text of a file that ``save_run`` saved.

    Args:
        text: The whole file.
        name: How errors call it.

    Raises:
        InputError: As ``read_run`` does.
    """
    try:
        whole = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except _NotFiniteError as error:
        raise _damaged(name, str(error)) from None
    except (ValueError, RecursionError) as error:
        raise _no_run(name, error) from error
    if not isinstance(whole, dict) or whole.get("kind") != KIND:
        raise InputError(f"{name} is no saved run. Give what casewright ask --save wrote.")
    form = whole.get("format")
    # True and 1.0 are equal to 1, and no format.
    if type(form) is not int or form != FORMAT:
        raise InputError(
            f"{name} is a saved run of format {str(form)[:20]!r}; this Casewright "
            f"reads {FORMAT}. Open it with the Casewright that saved it, or ask again."
        )
    question = whole.get("question", "")
    if not isinstance(question, str):
        raise _damaged(name, "question: it is no text")
    try:
        return SavedRun(checked_answer(whole.get("answer")), question)
    except RecursionError:
        raise _damaged(name, "it is nested too deeply") from None
    except ValueError as error:
        raise _damaged(name, str(error)) from None


def _no_run(name: object, error: Exception) -> InputError:
    return InputError(
        f"{name} is no saved run: it is not JSON, or cut short ({cleaned(str(error), 120)}). "
        "Give what casewright ask --save wrote."
    )


def _damaged(name: str, what: str) -> InputError:
    return InputError(
        f"{name} is a damaged run: {cleaned(what, 200)}. Give what casewright ask --save wrote."
    )


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(number: str) -> Any:
    if not math.isfinite(value := float(number)):
        raise _NotFiniteError(f"the number {number[:20]} is larger than a number can be")
    return value
