"""Reads files of queries in several formats, and appends queries to JSON Lines files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.planner import QueryRecord
from casewright.planner.request import check_question

#: Maximum number of bytes of a file of queries.
MAX_BYTES = 1 << 30


def read_queries(path: Path) -> list[dict[str, Any]]:
    """Return the queries of a file as records with a unique ``id`` and a ``query``.

    The file is a JSON list, JSON Lines, or plain text with one query a line. A JSON value is a
    query's text or record; records keep their other fields. A query without an id gets one from
    the file's name and the number of the line or entry, as ``queries-3``. A repeated id gets this
    text as a suffix. ``InputError`` if the file cannot be read, or has no query or a wrong one.
    """
    results = []
    ids: set[str] = set()
    for unit, number, value in _read_values(path):
        fields = {"query": value} if isinstance(value, str) else value
        try:
            record = QueryRecord.read(fields)
            check_question(record.query)
        except InputError as error:
            raise InputError(f"{path}, {unit} {number}: {error}") from error
        id_ = f"{path.stem}-{number}" if record.id in (None, "") else str(record.id)
        if id_ in ids:
            id_ = f"{id_}-{path.stem}-{number}"
        ids.add(id_)
        results.append({**fields, "id": id_})
    if not results:
        raise InputError(f"{path} holds no query. Give texts, one a line, or JSON.")
    return results


def _read_values(path: Path) -> Iterator[tuple[str, int, Any]]:
    """Yield each value's unit (``entry`` or ``line``), the unit's number from 1, and the value."""
    text = read_text(path)
    first_character = text.lstrip()[:1]
    if first_character == "[":
        try:
            entries = json.loads(text)
        except (ValueError, RecursionError) as error:
            # Plain text may also begin with a bracket or a quotation mark, and is read by lines.
            if path.suffix.lower() == ".json":
                raise InputError(f"{path} is no JSON list: {error}.") from error
        else:
            yield from (("entry", number, value) for number, value in enumerate(entries, 1))
            return
    # ``splitlines`` would also split at other line separators, which JSON texts may contain.
    for number, line in enumerate(text.split("\n"), 1):
        if not (value := line.strip()):
            continue
        if first_character in ("{", '"'):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                if first_character == "{":
                    raise InputError(f"{path}, line {number}: no JSON: {error}.") from error
        yield "line", number, value


def read_text(path: Path) -> str:
    """Return a file's text; raise ``InputError`` if it is not UTF-8, or larger than 1 GiB."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path} is larger than 1 GiB. Give a smaller file of queries.")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no UTF-8 text: {error.reason}.") from error


def check_output(target: Path, *inputs: Path | None) -> None:
    """Raise ``InputError`` if a file cannot be written, or is one of the inputs."""
    folder = target.absolute().parent
    if target.is_dir() or not folder.is_dir():
        raise InputError(f"{target} cannot be written. Give a file in a folder that exists.")
    if not os.access(target if target.exists() else folder, os.W_OK):
        raise InputError(f"{target} cannot be written. Give a file that you may write to.")
    for source in inputs:
        if source is not None and target.exists() and source.exists() and target.samefile(source):
            raise InputError(f"{target} is read by this command. Choose another file to write.")


def json_line(record: Mapping[str, Any]) -> str:
    """Return a record as one line of JSON with a line feed."""
    line = json.dumps(record, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:
        # UTF-8 cannot represent half a surrogate pair, but JSON can escape it.
        line = json.dumps(record)
    return line + "\n"


def write_new(path: Path, lines: Iterable[str]) -> None:
    """Write lines that end in line feeds to a new file; ``InputError`` if the file exists."""
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from error


class QueryFile:
    """A JSON Lines file to which a run appends queries; ``records`` are those of earlier runs only.

    Opening the file removes an incomplete last line, which a killed run leaves. ``InputError`` if
    the file cannot be read or written, or has a line that is no query.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: list[dict[str, Any]] = []
        *complete_lines, last_line = (read_text(path) if path.exists() else "").split("\n")
        for number, line in enumerate((*complete_lines, last_line), 1):
            value = _json_or_none(line)
            # Only the last line may be incomplete: a killed run leaves the beginning of a record.
            is_cut_off = number > len(complete_lines) and not value and line.startswith("{")
            if isinstance(value, dict) and isinstance(value.get("query"), str):
                self.records.append(value)
            elif line.strip() and not is_cut_off:
                raise InputError(
                    f"{path}, line {number}: no annotated query. Choose another file: this command "
                    "adds only to files that it wrote."
                )
        if last_line.strip():
            # A complete last line lacks only its line feed.
            is_complete = bool(_json_or_none(last_line))
            self._write("\n" if is_complete else "", remove_last=not is_complete)
        self._known_size = self._size()

    def append(self, record: Mapping[str, Any]) -> None:
        """Append one record; raise ``InputError`` if another process has changed the file."""
        if self._size() != self._known_size:
            raise InputError(
                f"{self.path} was changed while this command ran, perhaps by another run of it. "
                "Wait for that run to end, then run this one again: it continues with the file."
            )
        self._write(json_line(record))
        self._known_size = self._size()

    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def _write(self, text: str, *, remove_last: bool = False) -> None:
        """Append a text; with ``remove_last``, first remove the incomplete last line."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b") as file:
                if remove_last:
                    file.seek(0)
                    file.truncate(file.read().rfind(b"\n") + 1)
                file.write(text.encode())
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error.strerror}.") from error


def _json_or_none(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
