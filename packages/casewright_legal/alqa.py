"""Reads Open Australian Legal QA (ALQA): 2,124 questions with answers and source texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from casewright.errors import DependencyError, InputError, one_line
from casewright.stores import Case
from casewright.stores.progress import progress_bar
from casewright_legal.acts import act_keys
from casewright_legal.cases import qa_case
from casewright_legal.entities import extract_entities

#: The data set's names on Hugging Face, the current name first.
DATASETS = ("isaacus/open-australian-legal-qa", "umarbutler/open-australian-legal-qa")
#: Returns the entities of a text.
Extractor = Callable[[str], Sequence[str]]

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _StrictlyTyped(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class _Source(_StrictlyTyped):
    text: _Text
    citation: _Text
    version_id: str = ""
    type: str = ""
    jurisdiction: str = ""
    source: str = ""
    url: str = ""


class _Record(_StrictlyTyped):
    question: _Text
    answer: _Text
    source: _Source


def read_alqa(
    source: str | Path, extractor: Extractor = extract_entities, *, progress: bool | None = None
) -> list[Case]:
    """Return the cases ⟨question, support, entities, answer⟩ of ALQA, or of a set in this format.

    The support is the text of the record's source. The metadata have the source's other fields,
    the citation again as ``key``, and ``acts``: the ``act_keys`` of the citation and the entities.

    Args:
        source: Path of the published ``qa.jsonl``, or the data set's name on Hugging Face.
        extractor: Extracts the entities of each support.

    Raises:
        InputError: The source is empty, cannot be read, or has a record in another format.
        DependencyError: The source is a data set's name, and ``datasets`` is not installed.
    """
    records = list(_records(str(source)))
    if not records:
        raise InputError(f"{source} has no cases. ALQA has one JSON object per line.")
    cases = []
    with progress_bar(f"Reading the cases of {source}", len(records), show=progress) as advance:
        for location, record in records:
            cases.append(_to_case(_validate(record, location), extractor))
            advance(1)
    return cases


def is_dataset(source: str) -> bool:
    """Return ``True`` if a source looks like a name on Hugging Face, and no such path exists."""
    parts = source.split("/")
    is_name = len(parts) == 2 and all(parts) and not source.endswith((".jsonl", ".json"))
    return is_name and not Path(source).exists()


def _to_case(record: _Record, extractor: Extractor) -> Case:
    source = record.source
    entities = list(extractor(source.text))
    acts = act_keys([*extract_entities(source.citation), *entities])
    metadata = {"key": source.citation, "acts": acts, **source.model_dump(exclude={"text"})}
    return qa_case(record.question, source.text, entities, record.answer, **metadata)


def _validate(record: Any, location: str) -> _Record:
    try:
        return _Record.model_validate(record)
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(map(str, problem["loc"])) or "the record"
        raise InputError(
            f"{location}: {field}: {problem['msg']}. A record of ALQA has a question, an "
            "answer, and a source with a text and a citation."
        ) from error


def _records(source: str) -> Iterator[tuple[str, Any]]:
    """Yield each record's place in the source, for messages, and the record."""
    if is_dataset(source):
        for number, record in enumerate(_download(source), 1):
            yield f"{source}, record {number}", record
        return
    path = Path(source)
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} cannot be read: {error}. Give the path of ALQA's qa.jsonl, or the data "
            f"set's name on Hugging Face: {DATASETS[0]}."
        ) from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            location = f"{path}, line {number}"
            try:
                yield location, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{location}: the line is not JSON: {error}.") from error


def _download(name: str) -> Any:
    try:
        datasets = import_module("datasets")
    except ImportError as error:
        raise DependencyError(
            f"The set {name} is read from Hugging Face with the package datasets, which is not "
            "installed. Run: pip install datasets"
        ) from error
    try:
        return datasets.load_dataset(name, split="train")
    except Exception as error:  # the hub's client may raise any exception
        raise InputError(
            f"The set {name} cannot be read from Hugging Face: {one_line(error)}. Download the "
            "file qa.jsonl, and give the path of that file."
        ) from error
