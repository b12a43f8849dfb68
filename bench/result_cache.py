"""A cache of the results of slow calls, for later runs of a benchmark."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from casewright.finetune.records import read_values


class ResultCache:
    """A cache of results in a JSON Lines file; a person may add fields, such as labels, to a line.

    If ``file`` is ``None``, the results are only in memory. Raise ``InputError`` if the file cannot
    be read.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        records = read_values(file) if file is not None and file.exists() else ()
        self._results: dict[tuple[str, ...], dict[str, Any]] = {
            tuple(value["key"]): value for _, _, value in records
        }

    def get(self, key: tuple[str, ...], compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Return a key's result, with the fields that a person added; compute a missing result."""
        if key not in self._results:
            self._results[key] = {"key": key, **compute()}
            if self._file is not None:
                with self._file.open("a", encoding="utf-8") as output:
                    output.write(json.dumps(self._results[key], ensure_ascii=False) + "\n")
        return self._results[key]
