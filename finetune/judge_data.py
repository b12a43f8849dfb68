"""Labelled questions for the offline judge, and how people give their own."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.stores import Case, CaseSchema, CaseStore, Encoder, text_facet
from casewright.stores.case import CASE_NAMESPACE
from casewright.stores.feedback import SentenceStrategy, Strategy

CASES, QUESTIONS = "cases.jsonl", "questions.jsonl"


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
        name: How the set is called in tables.
        store: Holds the cases.
        training: Questions to learn from.
        test: Questions that nothing is learned from.
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
    """Say whether a folder holds labelled questions of somebody's own."""
    return (folder / QUESTIONS).is_file() or (folder / CASES).is_file()


def read_labelled(folder: Path) -> tuple[list[Case], list[LabelledQuestion]]:
    """Read ``cases.jsonl`` and ``questions.jsonl``: one JSON object a line.

    A case has ``id``, ``text`` and, if it likes, ``title``; a question has ``id``, ``question`` and
    ``relevant``, a list of case ids. The cases' own ids are kept in their metadata as ``key``.

    Raises:
        InputError: A file is not there, or a line has another form; the message has its number.
    """
    cases: dict[str, Case] = {}
    for where, told in _lines(folder / CASES):
        key = _text(told, "id", where)
        if key in cases:
            raise InputError(f"{where}: another case has the id {key!r}. Give each its own.")
        problem = {"text": _text(told, "text", where)}
        if told.get("title") not in (None, ""):
            problem = {"title": _text(told, "title", where), **problem}
        id_ = str(uuid.uuid5(CASE_NAMESPACE, json.dumps(["labelled", key])))
        cases[key] = Case(problem, problem["text"], metadata={"key": key}, id=id_)
    questions: dict[str, LabelledQuestion] = {}
    for where, told in _lines(folder / QUESTIONS):
        key = _text(told, "id", where)
        if key in questions:
            raise InputError(f"{where}: another question has the id {key!r}. Give each its own.")
        wanted = told.get("relevant")
        if not isinstance(wanted, list) or not wanted:
            raise InputError(f"{where}: 'relevant' is {wanted!r:.80}. Give a list of case ids.")
        if unknown := [one for one in wanted if not isinstance(one, str) or one not in cases]:
            raise InputError(f"{where}: {CASES} has no case with the id {unknown[0]!r:.80}.")
        relevant = frozenset(cases[one].id for one in wanted)
        questions[key] = LabelledQuestion(key, _text(told, "question", where), relevant)
    return list(cases.values()), list(questions.values())


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
    training = [one for one in questions if is_training(one.id)]
    test = [one for one in questions if not is_training(one.id)]
    if not (training and test):
        raise InputError(
            f"Set {name} has {len(training)} questions to train with and {len(test)} to test "
            "with; a hash of its id says which half a question is of. Give more questions."
        )
    return training, test


def _lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8"
        raise InputError(
            f"{file} cannot be read: {reason}. Labelled data is a folder with {CASES} and "
            f"{QUESTIONS}."
        ) from error
    empty = True
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        try:
            told = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where} is no JSON: {error}. Give one object a line.") from error
        if not isinstance(told, dict):
            raise InputError(f"{where} is {told!r:.80}. Give one JSON object a line.")
        empty = False
        yield where, told
    if empty:
        raise InputError(f"{file} is empty. Give one JSON object a line.")


def _text(told: Mapping[str, Any], name: str, where: str) -> str:
    value = told.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: {name!r} is {value!r:.80}. Give text that is not empty.")
    return value
