"""A file of JSON Lines that a killed run leaves whole, and a later one goes on with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.finetune.queries.query_files import json_line, read_text


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
