"""TruthfulQA's multiple-choice questions, as questions and as cases (Lin et al. 2022)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.finetune.demonstrations import Demonstration, JudgedQuestion
from casewright.finetune.demonstrations.cases_file import read_demonstrations
from casewright.stores import Case

#: Of the first folders that hold it.
FILE = "mc_task.json"
_PLACES = ("", "v1", "data/v1")


def read_truthfulqa(folder: Path) -> list[JudgedQuestion]:
    """Read the questions with their right answers, the best one first, and their wrong ones.

    Each is to be asked without cases of its own: its metadata field ``group`` is its number.

    Raises:
        InputError: The folder has no such file, or it has another form.
    """
    files = [folder / place / FILE for place in _PLACES]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        raise InputError(
            f"{folder} holds no {FILE}. Give the folder of TruthfulQA's data: {FILE} is in data/v1 "
            "of its repository, github.com/sylinrl/TruthfulQA."
        )
    try:
        rows = json.loads(found.read_text(encoding="utf-8"))
        return [_question(row, number) for number, row in enumerate(rows)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise InputError(
            f"{found} is not TruthfulQA's file of that name. Fetch it anew."
        ) from error


def read_primer(file: Path) -> tuple[Demonstration, ...]:
    """Read a fixed primer: JSON Lines of ``question`` and ``answer``, in the prompt's order.

    Raises:
        InputError: The file cannot be read, or has another form.
    """
    cases = read_demonstrations(file)
    return tuple(Demonstration(case.problem["question"], str(case.solution)) for case in cases)


def cases_of(questions: Sequence[JudgedQuestion]) -> list[Case]:
    """Return each right answer as a case."""
    return [
        Case({"question": one.question}, answer, metadata={"group": number})
        for number, one in enumerate(questions)
        for answer in one.right
    ]


def _question(row: dict[str, Any], number: int) -> JudgedQuestion:
    best = next(answer for answer, label in row["mc1_targets"].items() if label)
    labels = row["mc2_targets"]
    right = [answer for answer, label in labels.items() if label and answer != best]
    wrong = [answer for answer, label in labels.items() if not label]
    return JudgedQuestion(row["question"], (best, *right), tuple(wrong), ("group", number))
