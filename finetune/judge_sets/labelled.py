"""Reads cases and labelled questions from a user's folder."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import Field

from casewright.errors import InputError
from casewright.finetune.judge_sets.sets import FeedbackSet, LabelledQuestion
from casewright.finetune.records import Record, Text, read_records
from casewright.stores import Case
from casewright.stores.case import CASE_NAMESPACE

#: The names of the two files in the folder.
CASES, QUESTIONS = "cases.jsonl", "questions.jsonl"
LineRecord = TypeVar("LineRecord", "_Case", "_Question")


class _Case(Record):
    id: Text
    text: Text
    title: str | None = None


class _Question(Record):
    id: Text
    question: Text
    relevant: list[str] = Field(min_length=1)


def labelled_set(folder: Path) -> FeedbackSet:
    """Return the set in ``cases.jsonl`` and ``questions.jsonl``, which have one JSON object a line.

    A case has ``id``, ``text`` and optionally ``title``; a question has ``id``, ``question`` and
    ``relevant``, a list of case ids. A returned case has a new id; ``key`` in the case's metadata
    is the id in the file. Raises ``InputError`` if a file is missing, or a line is malformed.
    """
    cases: dict[str, Case] = {}
    for _, case in _read_lines(folder / CASES, _Case):
        problem = {**({"title": case.title} if case.title else {}), "text": case.text}
        id_ = str(uuid.uuid5(CASE_NAMESPACE, json.dumps(["labelled", case.id])))
        cases[case.id] = Case(problem, case.text, metadata={"key": case.id}, id=id_)
    questions = []
    for location, question in _read_lines(folder / QUESTIONS, _Question):
        if missing := [id_ for id_ in question.relevant if id_ not in cases]:
            raise InputError(f"{location}: {CASES} has no case with the id {missing[0]!r:.80}.")
        relevant = frozenset(cases[id_].id for id_ in question.relevant)
        questions.append(LabelledQuestion(question.id, question.question, relevant))
    return FeedbackSet(folder.resolve().name, "paragraphs", list(cases.values()), questions)


def _read_lines(file: Path, model: type[LineRecord]) -> Iterator[tuple[str, LineRecord]]:
    """Yield the location and the record of each line; raise ``InputError`` for a repeated id."""
    ids: set[str] = set()
    advice = f"See {CASES} and {QUESTIONS} in the docs."
    for number, record in read_records(file, model, advice):
        location = f"{file}, line {number}"
        if record.id in ids:
            raise InputError(f"{location}: the id {record.id!r} is not unique. Change it.")
        ids.add(record.id)
        yield location, record
    if not ids:
        raise InputError(f"{file} is empty. Give one JSON object a line.")
