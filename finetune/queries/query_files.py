"""Files of queries in whichever form they are at hand, and lines that a killed run leaves whole."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.planner import QueryRecord
from casewright.planner.request import check_question

#: A larger file is no list of what people asked.
MAX_BYTES = 1 << 30


def read_queries(path: Path) -> list[dict[str, Any]]:
    """Read the queries of a file as records that have an ``id`` and a ``query``.

    The file is a JSON list of texts or records, JSON Lines of texts or records (annotated queries
    are such), or text with one query a line. Records keep whatever else they have; those without
    an id, or with one that another has, get the file's name and their place as id.

    Raises:
        InputError: The file cannot be read or has no query, or one cannot be used; names the line.
    """
    results = []
    taken: set[str] = set()
    for index, value in _values(path):
        given = {"query": value} if isinstance(value, str) else value
        try:
            read = QueryRecord.read(given)
            check_question(read.query)
        except InputError as error:
            raise InputError(f"{path}, {index}: {error}") from error
        name = f"{path.stem}-{index.split()[-1]}" if read.id in (None, "") else str(read.id)
        if name in taken:
            name = f"{name}-{path.stem}-{index.split()[-1]}"
        taken.add(name)
        results.append({**given, "id": name})
    if not results:
        raise InputError(f"{path} holds no query. Give texts, one a line, or JSON.")
    return results


def _values(path: Path) -> Iterator[tuple[str, Any]]:
    text = read_text(path)
    start = text.lstrip()[:1]
    if start == "[":
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError) as error:
            # Texts may stand in brackets; a .json file that is none is a mistake.
            if path.suffix.lower() == ".json":
                raise InputError(f"{path} is no JSON list: {error}.") from error
        else:
            yield from ((f"entry {number}", value) for number, value in enumerate(listed, 1))
            return
    # Lines end at line feeds alone: other separators may stand inside a text of JSON.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        if start in ("{", '"'):
            try:
                yield f"line {number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                if start == '"':
                    yield f"line {number}", line.strip()
                    continue
                raise InputError(f"{path}, line {number}: no JSON: {error}.") from error
        else:
            yield f"line {number}", line.strip()


def read_text(path: Path) -> str:
    """Return a file's text.

    Raises:
        InputError: It cannot be read, is no UTF-8 text, or is larger than 1 GiB.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path} is larger than 1 GiB. Give a smaller file of queries.")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no UTF-8 text: {error.reason}.") from error


def check_output(target: Path, *inputs: Path | None) -> None:
    """Refuse a file that cannot be written, or that a command reads, before what takes long.

    Raises:
        InputError: It is a folder, in none that exists or may be written to, or one of the inputs.
    """
    folder = target.absolute().parent
    if target.is_dir() or not folder.is_dir():
        raise InputError(f"{target} cannot be written. Give a file in a folder that exists.")
    if not os.access(target if target.exists() else folder, os.W_OK):
        raise InputError(f"{target} cannot be written. Give a file that you may write to.")
    for source in inputs:
        if source is not None and target.exists() and source.exists() and target.samefile(source):
            raise InputError(f"{target} is read by this command. Choose another file to write.")


def json_line(record: Mapping[str, Any]) -> str:
    """Return a record as one line of JSON, its end included."""
    line = json.dumps(record, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:
        # Half a surrogate pair can be written by its number alone.
        line = json.dumps(record)
    return line + "\n"


def write_new(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records to a file that is not there yet, one a line.

    Raises:
        InputError: It is there, or cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(map(json_line, records))
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from error


def _has_query(record: dict[str, Any]) -> bool:
    return isinstance(record.get("query"), str)


class ResumedLines:
    """A JSON Lines file, written one record after the other.

    Each record is in the file before the next is made. A last line that a killed run left without
    its end is taken off.

    Args:
        path: The file; made, with its folder, where it is not there.
        usable: Says whether a record is one of this file's.

    Attributes:
        records: What the file held when it was opened.

    Raises:
        InputError: It cannot be read or written, or holds something else.
    """

    def __init__(
        self,
        path: Path,
        usable: Callable[[dict[str, Any]], bool] = _has_query,
        other: str = "no annotated query",
    ) -> None:
        self.path = path
        self.records: list[dict[str, Any]] = []
        *whole, torn = (read_text(path) if path.exists() else "").split("\n")
        for number, line in enumerate((*whole, torn), 1):
            record = _decoded(line)
            if isinstance(record, dict) and usable(record):
                self.records.append(record)
            elif line.strip() and (number <= len(whole) or record or not line.startswith("{")):
                raise InputError(
                    f"{path}, line {number}: {other}, so this file is not gone on with. Choose "
                    "another to write."
                )
        if torn.strip():
            self._write("\n" if _decoded(torn) else "", cut=not _decoded(torn))
        self._bytes = self._size()

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record.

        Raises:
            InputError: The file cannot be written, or somebody else has written to it meanwhile.
        """
        if self._size() != self._bytes:
            raise InputError(
                f"{self.path} was changed while this command ran, perhaps by another run of it. "
                "Let that end, then run this one again: it goes on with what is there."
            )
        self._write(json_line(record))
        self._bytes = self._size()

    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def _write(self, text: str, *, cut: bool = False) -> None:
        """Add a text; ``cut`` takes off first what stands behind the last line's end."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b") as file:
                if cut:
                    file.seek(0)
                    file.truncate(file.read().rfind(b"\n") + 1)
                file.write(text.encode())
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error.strerror}.") from error


def _decoded(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
