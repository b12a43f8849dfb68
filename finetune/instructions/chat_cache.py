"""What a chat model wrote, kept in a file that a killed run leaves usable."""

from __future__ import annotations

import json
from pathlib import Path

from casewright.errors import InputError
from casewright.finetune.queries.query_files import drop_torn_line, json_line, read_text


class ChatCache:
    """Outcomes by their key, in a JSON Lines file that is only appended to.

    Args:
        file: The file; without one, outcomes are kept in memory.

    Raises:
        InputError: The file cannot be read, or is another file than one of outcomes.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._known: dict[str, dict[str, object]] = {}
        if file is not None and file.exists():
            self._read(file)

    def get(self, key: str) -> dict[str, object] | None:
        """Return the outcome of a key, if it is known."""
        return self._known.get(key)

    def add(self, key: str, outcome: dict[str, object]) -> None:
        """Keep an outcome.

        Raises:
            InputError: The file cannot be written.
        """
        self._known[key] = outcome
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json_line(outcome))
        except OSError as error:
            raise InputError(f"{self._file} cannot be written: {error.strerror}.") from error

    def _read(self, file: Path) -> None:
        whole, _, torn = read_text(file).rpartition("\n")
        for number, line in enumerate(whole.split("\n"), 1):
            if not line.strip():
                continue
            try:
                outcome = json.loads(line)
                texts = [outcome[name] for name in ("key", "operation", "instruction", "answer")]
                usable = "constraint" in outcome and all(isinstance(text, str) for text in texts)
            except (ValueError, RecursionError, KeyError, TypeError):
                usable = False
            if not usable:
                raise InputError(
                    f"{file}, line {number} is no outcome of an evolution. Give the file of an "
                    "earlier run, or a name where there is none yet."
                )
            self._known[outcome["key"]] = outcome
        if torn:
            # What follows must not continue it.
            drop_torn_line(file)
