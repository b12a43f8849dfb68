"""Labelled questions for the offline judge, and files of a user's own."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field

from casewright.errors import InputError
from casewright.finetune.records import Record, Text, read_records
from casewright.stores import Case, CaseSchema, CaseStore, Encoder, text_facet
from casewright.stores.case import CASE_NAMESPACE
from casewright.stores.feedback import SentenceStrategy, Strategy

CASES, QUESTIONS = "cases.jsonl", "questions.jsonl"
Labelled = TypeVar("Labelled", "_Case", "_Question")


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question, and the ids of all cases relevant to it."""

    id: str
    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Cases and labelled questions.

    Attributes:
        strategies: Searches of later rounds; the judge learns from the states of all of them.
        settings: Facts of the set, kept with the judge.
    """

    name: str
    store: CaseStore
    training: Sequence[LabelledQuestion]
    test: Sequence[LabelledQuestion]
    strategies: Sequence[Strategy] = (SentenceStrategy(),)
    settings: Mapping[str, Any] = field(default_factory=dict)


def is_labelled_folder(folder: Path) -> bool:
    """Return whether a folder holds a user's labelled questions."""
    return (folder / QUESTIONS).is_file() or (folder / CASES).is_file()


class _Case(Record):
    id: Text
    text: Text
    title: str | None = None


class _Question(Record):
    id: Text
    question: Text
    relevant: list[str] = Field(min_length=1)


def read_labelled(folder: Path) -> tuple[list[Case], list[LabelledQuestion]]:
    """Read ``cases.jsonl`` and ``questions.jsonl``: one JSON object a line.

    A case has ``id``, ``text`` and optionally ``title``; a question has ``id``, ``question`` and
    ``relevant``, a list of case ids. The cases' own ids are kept in their metadata as ``key``.

    Raises:
        InputError: A file is missing, or a line is malformed; the message has its number.
    """
    cases: dict[str, Case] = {}
    for _, case in _lines(folder / CASES, _Case):
        problem = {**({"title": case.title} if case.title else {}), "text": case.text}
        id_ = str(uuid.uuid5(CASE_NAMESPACE, json.dumps(["labelled", case.id])))
        cases[case.id] = Case(problem, case.text, metadata={"key": case.id}, id=id_)
    questions = []
    for location, item in _lines(folder / QUESTIONS, _Question):
        if unknown := [name for name in item.relevant if name not in cases]:
            raise InputError(f"{location}: {CASES} has no case with the id {unknown[0]!r:.80}.")
        relevant = frozenset(cases[name].id for name in item.relevant)
        questions.append(LabelledQuestion(item.id, item.question, relevant))
    return list(cases.values()), questions


def _lines(file: Path, model: type[Labelled]) -> Iterator[tuple[str, Labelled]]:
    """Yield the locations of a file's records, and the records."""
    seen: set[str] = set()
    for number, record in read_records(file, model, f"See {CASES} and {QUESTIONS} in the docs."):
        location = f"{file}, line {number}"
        if record.id in seen:
            raise InputError(f"{location}: the id {record.id!r} is not unique. Change it.")
        seen.add(record.id)
        yield location, record
    if not seen:
        raise InputError(f"{file} is empty. Give one JSON object a line.")


def labelled_store(
    cases: Sequence[Case], encoder: Encoder, location: str | Path = ":memory:"
) -> CaseStore:
    """Return a store of such cases, with a facet of texts, and of titles where any has one."""
    facets = [text_facet("text", encoder, weight=0.7)]
    if any("title" in case.problem for case in cases):
        facets.append(text_facet("title", encoder, weight=0.3))
    store = CaseStore(CaseSchema("labelled", tuple(facets)), location)
    try:
        store.add(cases)
    except BaseException:
        store.close()
        raise
    return store


def halves(
    name: str, questions: Sequence[LabelledQuestion], is_training: Callable[[str], bool]
) -> tuple[list[LabelledQuestion], list[LabelledQuestion]]:
    """Return the training questions and the test questions of a set.

    Raises:
        InputError: A half has no question.
    """
    training = [item for item in questions if is_training(item.id)]
    test = [item for item in questions if not is_training(item.id)]
    if not (training and test):
        raise InputError(
            f"Set {name} has {len(training)} questions to train with and {len(test)} to test "
            "with; a hash of its id decides a question's half. Give more questions."
        )
    return training, test
