"""Labelled questions for the offline judge, and how people give their own."""

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
    """A question, and the ids of all cases that are relevant to it."""

    id: str
    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Cases that are searched, and labelled questions.

    Attributes:
        strategies: How later rounds search; states of all of them are learned from.
        settings: What the set was made of, kept with the judge.
    """

    name: str
    store: CaseStore
    training: Sequence[LabelledQuestion]
    test: Sequence[LabelledQuestion]
    strategies: Sequence[Strategy] = (SentenceStrategy(),)
    settings: Mapping[str, Any] = field(default_factory=dict)


def is_labelled_folder(folder: Path) -> bool:
    """Return whether a folder holds labelled questions of somebody's own."""
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

    A case has ``id``, ``text`` and, if it likes, ``title``; a question has ``id``, ``question`` and
    ``relevant``, a list of case ids. The cases' own ids are kept in their metadata as ``key``.

    Raises:
        InputError: A file is not there, or a line has another form; the message has its number.
    """
    cases: dict[str, Case] = {}
    for key, line, _ in _lines(folder / CASES, _Case):
        problem = {**({"title": line.title} if line.title else {}), "text": line.text}
        id_ = str(uuid.uuid5(CASE_NAMESPACE, json.dumps(["labelled", key])))
        cases[key] = Case(problem, line.text, metadata={"key": key}, id=id_)
    questions = []
    for key, asked, where in _lines(folder / QUESTIONS, _Question):
        if unknown := [name for name in asked.relevant if name not in cases]:
            raise InputError(f"{where}: {CASES} has no case with the id {unknown[0]!r:.80}.")
        relevant = frozenset(cases[name].id for name in asked.relevant)
        questions.append(LabelledQuestion(key, asked.question, relevant))
    return list(cases.values()), questions


def _lines(file: Path, form: type[Labelled]) -> Iterator[tuple[str, Labelled, str]]:
    """Yield the ids of a file's records, the records, and their places."""
    seen: set[str] = set()
    for number, record in read_records(file, form, f"See {CASES} and {QUESTIONS} in the docs."):
        where = f"{file}, line {number}"
        if record.id in seen:
            raise InputError(f"{where}: another line has the id {record.id!r}. Give each its own.")
        seen.add(record.id)
        yield record.id, record, where
    if not seen:
        raise InputError(f"{file} is empty. Give one JSON object a line.")


def labelled_store(
    cases: Sequence[Case], encoder: Encoder, location: str | Path = ":memory:"
) -> CaseStore:
    """Return a store of such cases, compared by text, and by title where any has one."""
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
    """Return a set's questions to train with, and those to test with.

    Raises:
        InputError: A half has no question.
    """
    training = [item for item in questions if is_training(item.id)]
    test = [item for item in questions if not is_training(item.id)]
    if not (training and test):
        raise InputError(
            f"Set {name} has {len(training)} questions to train with and {len(test)} to test "
            "with; a hash of its id says which half a question is of. Give more questions."
        )
    return training, test
