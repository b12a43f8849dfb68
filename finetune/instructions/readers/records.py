"""Records of JSON and JSON Lines files, with their places, and what a reader says of bad ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.finetune.queries.query_files import read_text

#: Told the reason for each record, or part of one, that no instruction is made of.
Refuse = Callable[[str], None]


def read_json_lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield line numbers, from 1, and objects.

    Raises:
        InputError: The file cannot be read, or a line is no JSON object; names it.
    """
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{path}, line {number}: {error}. Each line must be one JSON object."
            ) from error
        if not isinstance(record, dict):
            raise InputError(
                f"{path}, line {number} is a JSON {type(record).__name__}, not an object."
            )
        yield number, record


def read_json_list(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the numbers, from 1, and the objects of a file that is one JSON list.

    Raises:
        InputError: The file cannot be read, or is no JSON list of objects; names the record.
    """
    try:
        read = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}. The file must be one JSON list of objects.") from error
    if not isinstance(read, list):
        raise InputError(f"{path} is a JSON {type(read).__name__}, not a list of objects.")
    for number, record in enumerate(read, 1):
        if not isinstance(record, dict):
            raise InputError(
                f"{path}, record {number} is a JSON {type(record).__name__}, not an object."
            )
        yield number, record


def text_of(record: Mapping[str, Any], name: str, place: str) -> str:
    """Return a record's text without the space around it.

    Raises:
        InputError: It is not there, or no text; says what is.
    """
    value = record.get(name)
    if not isinstance(value, str):
        what = "lacks" if name not in record else "has no text in"
        raise InputError(
            f"{place} {what} the field {name!r}. It has {sorted(record)}: is this the file that "
            "the reader is for?"
        )
    return value.strip()


def list_of(record: Mapping[str, Any], name: str, place: str) -> list[Any]:
    """Return a record's list.

    Raises:
        InputError: It is not there, or no list.
    """
    if not isinstance(value := record.get(name), list):
        raise InputError(f"{place} has no list in the field {name!r}. It has {sorted(record)}.")
    return value


def unquoted(text: str) -> str:
    """Return a question without the quotation marks around the whole of it, one of them lost."""
    asked = text.strip()
    inside = asked.strip('"').strip()
    return inside if '"' not in inside else asked


def one_file(path: Path, name: str) -> Path:
    """Return the file: the path itself, or the file of this name in the folder that it is.

    Raises:
        InputError: There is none.
    """
    found = path / name if path.is_dir() else path
    if not found.is_file():
        raise InputError(f"{found} does not exist. Give {name} or the folder that holds it.")
    return found
