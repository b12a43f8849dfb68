"""Results of slow calls, which a JSON Lines file keeps for later runs of a bench."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from casewright.finetune.records import read_values


class KeptResults:
    """A file of results that are computed once; a person may add fields to its lines.

    ``None`` as file keeps nothing; ``InputError`` if the file cannot be read.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        lines = read_values(file) if file is not None and file.exists() else ()
        self._kept: dict[tuple[str, ...], dict[str, Any]] = {
            tuple(value["key"]): value for _, _, value in lines
        }

    def get(self, key: tuple[str, ...], compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Return the result kept under a key with any added fields, or compute and keep it."""
        if key not in self._kept:
            self._kept[key] = {"key": key, **compute()}
            if self._file is not None:
                with self._file.open("a", encoding="utf-8") as output:
                    output.write(json.dumps(self._kept[key], ensure_ascii=False) + "\n")
        return self._kept[key]
