"""Reads JSON Lines files of demonstrations, which become cases, or of questions with answers."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from casewright.errors import InputError
from casewright.finetune.demonstrations.judged import JudgedQuestion
from casewright.finetune.demonstrations.quality import QUALITY_RANGE
from casewright.finetune.records import Model, Text, read_records
from casewright.stores import Case, CaseSchema, Encoder, text_facet


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    question: Text
    wrong: list[Text] = []
    group: str | int | None = None

    @property
    def group_key(self) -> str | int:
        return self.question if self.group is None else self.group


class _Demonstration(_Line):
    answer: Text


class _Question(_Line):
    right: list[Text] = Field(min_length=1)


def demonstration_schema(encoder: Encoder) -> CaseSchema:
    """Return the demonstrations' schema: a facet for questions; quality is a log-probability."""
    # Both queries and cases are questions, so ``inter`` is False.
    facets = (text_facet("question", encoder, inter=False),)
    return CaseSchema("demonstrations", facets, quality_range=QUALITY_RANGE)


def read_demonstrations(path: Path) -> list[Case]:
    """Return the demonstrations in a JSON Lines file as cases.

    Fields: ``question``, ``answer``, and optionally ``wrong`` (a list of wrong answers) and
    ``group`` (by default the question). A demonstration is never shown with a question of the same
    group. ``InputError`` names an invalid line.
    """
    return [
        Case({"question": d.question}, d.answer, metadata={"group": d.group_key, "wrong": d.wrong})
        for d in _read_lines(path, _Demonstration)
    ]


def read_judged(path: Path) -> list[JudgedQuestion]:
    """Return the questions in a JSON Lines file.

    Fields: ``question``, ``right`` (a list of right answers, the best one first), and optionally
    ``wrong`` and ``group``; see ``read_demonstrations``. ``InputError`` names an invalid line.
    """
    return [
        JudgedQuestion(q.question, tuple(q.right), tuple(q.wrong), ("group", q.group_key))
        for q in _read_lines(path, _Question)
    ]


def _read_lines(path: Path, model: type[Model]) -> list[Model]:
    lines = [line for _, line in read_records(path, model, "The command's help lists its fields.")]
    if not lines:
        raise InputError(f"{path} is empty. Give one JSON object a line.")
    return lines
