"""Demonstrations of a file as cases, and questions of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from casewright.errors import InputError
from casewright.finetune.demonstrations.judged import JudgedQuestion
from casewright.finetune.demonstrations.quality import QUALITY_RANGE
from casewright.finetune.records import Form, Text, read_records
from casewright.stores import Case, CaseSchema, Encoder, text_facet


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    question: Text
    wrong: list[Text] = []
    group: str | int | None = None

    @property
    def of(self) -> str | int:
        """The group of the line, or its question."""
        return self.question if self.group is None else self.group


class _Demonstration(_Line):
    answer: Text


class _Question(_Line):
    right: list[Text] = Field(min_length=1)


def demonstration_schema(encoder: Encoder) -> CaseSchema:
    """Return the schema of questions with answers: one facet, and quality as a log-probability."""
    return CaseSchema(
        "demonstrations",
        # Questions on both sides: CBR-RAG's f, without a cue.
        (text_facet("question", encoder, inter=False),),
        quality_range=QUALITY_RANGE,
    )


def read_demonstrations(path: Path) -> list[Case]:
    """Read demonstrations, JSON Lines: ``question``, ``answer``, maybe ``wrong`` and ``group``.

    ``wrong`` is a list of wrong answers. Lines of one ``group``, by default those of one question,
    are not shown before each other.

    Raises:
        InputError: The file cannot be read, is empty, or has a line of another form; names it.
    """
    return [
        Case(
            {"question": line.question},
            line.answer,
            metadata={"group": line.of, "wrong": list(line.wrong)},
        )
        for line in _lines(path, _Demonstration)
    ]


def read_judged(path: Path) -> list[JudgedQuestion]:
    """Read questions, JSON Lines: ``question``, ``right``, maybe ``wrong`` and ``group``.

    ``right`` lists right answers, the best one first. Demonstrations of the same ``group``, by
    default those of the same question, are not shown before it.

    Raises:
        InputError: The file cannot be read, is empty, or has a line of another form; names it.
    """
    return [
        JudgedQuestion(line.question, tuple(line.right), tuple(line.wrong), ("group", line.of))
        for line in _lines(path, _Question)
    ]


def _lines(path: Path, form: type[Form]) -> Iterator[Form]:
    empty = True
    for _, line in read_records(path, form, "Its fields are those of the command's help."):
        empty = False
        yield line
    if empty:
        raise InputError(f"{path} is empty. Give one JSON object a line.")
