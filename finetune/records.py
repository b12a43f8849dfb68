"""Records in JSON and JSON Lines files, validated by pydantic models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from casewright.errors import InputError
from casewright.finetune.queries.query_files import read_text

#: A text that is not empty after stripping.
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Model = TypeVar("Model", bound=BaseModel)


class Record(BaseModel):
    """Base class for models of records, with strict types and stripped texts."""

    model_config = ConfigDict(strict=True, str_strip_whitespace=True)


def read_records(
    path: Path, model: type[Model], advice: str = "Is this the right file?"
) -> Iterator[tuple[int, Model]]:
    """Yield each record's number, from 1, and the record as a model.

    The file is JSON Lines, or one JSON list. ``InputError`` if the file cannot be read, or a record
    is malformed; the message then names the record's location and ends with ``advice``.
    """
    for number, location, value in read_values(path):
        try:
            yield number, model.model_validate(value)
        except ValidationError as error:
            raise InputError(f"{location}: {first_problem(error)} {advice}") from error


def read_values(path: Path) -> Iterator[tuple[int, str, Any]]:
    """Yield the number, location and decoded JSON of each record, without validation by a model.

    File formats and other errors are the same as for ``read_records``.
    """
    text = read_text(path)
    if text.lstrip().startswith("[") and path.suffix == ".json":
        values = _decode(text, f"{path}", "The file must be one JSON list of objects.")
        for number, value in enumerate(values, 1):
            yield number, f"{path}, record {number}", value
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            location = f"{path}, line {number}"
            yield number, location, _decode(line, location, "Give one JSON object a line.")


def first_problem(error: ValidationError) -> str:
    """Return a sentence about the first problem of a record, with the problem's field."""
    problem = error.errors()[0]
    field = ".".join(map(str, problem["loc"]))
    message = problem["msg"].removeprefix("Value error, ")
    return f"{field}: {message}." if field else f"{message}."


def _decode(text: str, location: str, advice: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{location} is no JSON: {error}. {advice}") from error
