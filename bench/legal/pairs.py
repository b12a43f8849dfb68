"""ALQA, and the legal domain's own cases in its form, with questions made of pairs of cases."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from casewright.bench.legal.data import ALQA, SHIPPED, PairQuestion, QaSet
from casewright.domains.legal.alqa import read_alqa
from casewright.domains.legal.data import data_file
from casewright.domains.legal.question_pairs import cited_as
from casewright.errors import InputError
from casewright.stores import Case


def alqa_set(folder: Path) -> QaSet:
    """Read ALQA's published ``qa.jsonl`` and the questions in ``pairs.jsonl`` beside it.

    Raises:
        InputError: A file cannot be read or has another form.
    """
    return _pair_set(ALQA, folder / "qa.jsonl", folder / "pairs.jsonl")


def shipped_set() -> QaSet:
    """Read the cases and the questions that the legal domain ships."""
    cases, pairs = (Path(str(data_file(name))) for name in ("cases", "pairs"))
    return _pair_set(SHIPPED, cases, pairs)


def _pair_set(name: str, cases_file: Path, pairs_file: Path) -> QaSet:
    """Read cases, and questions whose parents are named by citation or counted from 0.

    A question is left out where a parent is named by what several cases are cited by.
    """
    cases = read_alqa(cases_file)
    places: dict[str, list[int]] = {}
    for place, case in enumerate(cases):
        places.setdefault(cited_as(case), []).append(place)
    questions, left_out = [], 0
    for where, record in _records(pairs_file):
        parents = _parents(record, cases, places, where)
        if len(set(parents)) == 2:
            first, second = sorted(parents)
            questions.append(PairQuestion(record["question"], (first, second), record["answer"]))
        else:
            left_out += 1
    return QaSet(name, cases, questions, left_out)


def _parents(
    record: Mapping[str, Any],
    cases: Sequence[Case],
    places: Mapping[str, Sequence[int]],
    where: str,
) -> list[int]:
    """Return the positions of the parents that are told apart from all other cases."""
    found: list[int] = []
    for parent in record["parents"]:
        if isinstance(parent, int):
            known: Sequence[int] = [parent] if 0 <= parent < len(cases) else []
        else:
            known = places.get(str(parent), [])
        if not known:
            raise InputError(f"{where}: no case is cited as {parent!r}, a parent of this question.")
        found += known if len(known) == 1 else []
    return found


def _records(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield where each question stands, and the question."""
    try:
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file} cannot be read: {error}. It holds the questions, one JSON object a line: "
            "question, answer, and parents, two citations of cases."
        ) from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: this is no JSON: {error}.") from error
        texts = (record.get("question"), record.get("answer")) if isinstance(record, dict) else ()
        if not (
            texts
            and all(isinstance(text, str) and text for text in texts)
            and isinstance(record.get("parents"), list)
        ):
            raise InputError(
                f"{where}: a question has question and answer, and parents, two citations of cases."
            )
        yield where, record
