"""A file of annotated queries that a killed run leaves whole, and a later one goes on with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.finetune.queries.query_files import drop_torn_line, json_line, read_text


class ResumedLines:
    """A JSON Lines file of records with a query, written one record after the other.

    Each record is in the file before the next is made. A last line that a killed run left without
    its end is taken off.

    Attributes:
        path: The file.
        records: What it held when it was opened.

    Raises:
        InputError: It cannot be read or written, or holds something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        text = read_text(path) if path.exists() else ""
        whole, _, torn = text.rpartition("\n")
        self.records = [
            self._record(line, number)
            for number, line in enumerate(whole.split("\n"), 1)
            if line.strip()
        ]
        if torn.strip():
            decoded = _decoded(torn)
            if decoded is None and torn.startswith("{"):
                drop_torn_line(path)
            else:
                self.records.append(self._record(torn, text.count("\n") + 1))
                self._write("\n")
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

    def _write(self, text: str) -> None:
        try:
            with self.path.open("a", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            raise InputError(f"{self.path} cannot be written: {error.strerror}.") from error

    def _record(self, line: str, number: int) -> dict[str, Any]:
        record = _decoded(line)
        if not isinstance(record, dict) or not isinstance(record.get("query"), str):
            raise InputError(
                f"{self.path}, line {number}: no annotated query, so this file is not gone on "
                "with. Choose another to write."
            )
        return record


def _decoded(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
