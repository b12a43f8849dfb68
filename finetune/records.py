"""Records of JSON and JSON Lines files, by their form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from casewright.errors import InputError
from casewright.finetune.queries.query_files import read_text


class Record(BaseModel):
    """The fields that a reader needs of a record; texts are stripped."""

    model_config = ConfigDict(strict=True, str_strip_whitespace=True)


#: A text that is not empty.
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Form = TypeVar("Form", bound=BaseModel)


def read_records(
    path: Path, form: type[Form], mend: str = "Is this the file that the reader is for?"
) -> Iterator[tuple[int, Form]]:
    """Yield the records of a file that is JSON Lines, or one JSON list, with their numbers from 1.

    Raises:
        InputError: The file cannot be read, or has another form; names the line or record, and the
            mend.
    """
    for number, location, value in read_values(path):
        try:
            yield number, form.model_validate(value)
        except ValidationError as error:
            raise InputError(f"{location}: {first_problem(error)} {mend}") from error


def read_values(path: Path) -> Iterator[tuple[int, str, Any]]:
    """Yield the decoded values of such a file, each after its number and its place.

    Raises:
        InputError: The file cannot be read, or is no JSON; names the line.
    """
    text = read_text(path)
    listed = text.lstrip().startswith("[") and path.suffix == ".json"
    given: list[Any] = text.split("\n")
    if listed:
        given = _decoded(text, f"{path}", "The file must be one JSON list of objects.")
    for number, value in enumerate(given, 1):
        location = f"{path}, {'record' if listed else 'line'} {number}"
        if listed or value.strip():
            decoded = value if listed else _decoded(value, location, "Give one JSON object a line.")
            yield number, location, decoded


def first_problem(error: ValidationError) -> str:
    """Return the first problem of a record, as a sentence with its place."""
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"]))
    return f"{field}: {first['msg']}." if field else f"{first['msg']}."


def _decoded(text: str, place: str, mend: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} is no JSON: {error}. {mend}") from error
