"""Records a scorer's likelihoods in a file, so that an interrupted run can resume."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path

from casewright.errors import InputError, one_line
from casewright.finetune.demonstrations.judged import AnswerPrompt, AnswerScorer, Likelihood


class RecordedScorer:
    """A scorer that stores its likelihoods in a SQLite file, and scores no prompt twice.

    A prompt's likelihoods are in the file before ``score`` yields them. The file's keys depend on
    the model's weights and the whole prompt, so several models may use one file. ``InputError`` if
    the file cannot be opened or created.
    """

    def __init__(self, scorer: AnswerScorer, path: Path) -> None:
        self.scorer = scorer
        self.name, self.signature = scorer.name, scorer.signature
        self._path = path
        with self._file_errors_as_input_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=30)
            # In this mode, the last write of a killed process is complete or absent.
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS prompts (key TEXT PRIMARY KEY, scores TEXT NOT NULL)"
            )

    def key(self, prompt: AnswerPrompt) -> str:
        """Return the wrapped scorer's key for a prompt."""
        return self.scorer.key(prompt)

    def tokens(self, prompts: Sequence[AnswerPrompt]) -> int:
        """Return the number of tokens that the model reads for prompts not in the file."""
        return self.scorer.tokens(self.missing(prompts))

    def missing(self, prompts: Sequence[AnswerPrompt]) -> list[AnswerPrompt]:
        """Return the prompts that are not in the file, without duplicates."""
        prompt_by_key = {self.key(prompt): prompt for prompt in prompts}
        stored = self._read_stored(prompt_by_key)
        return [prompt for key, prompt in prompt_by_key.items() if key not in stored]

    def score(self, prompts: Sequence[AnswerPrompt]) -> Iterator[tuple[int, Sequence[Likelihood]]]:
        """Yield each prompt's index and its answers' likelihoods, first for prompts in the file."""
        keys = [self.key(prompt) for prompt in prompts]
        stored = self._read_stored(keys)
        # For each key that is not in the file, the indices of the prompts with this key.
        indices_by_key: dict[str, list[int]] = {}
        for index, key in enumerate(keys):
            if key in stored:
                yield index, stored[key]
            else:
                indices_by_key.setdefault(key, []).append(index)
        pending = list(indices_by_key.items())
        unique_prompts = [prompts[indices[0]] for indices in indices_by_key.values()]
        for unique_index, likelihoods in self.scorer.score(unique_prompts):
            key, indices = pending[unique_index]
            scores = json.dumps([astuple(likelihood) for likelihood in likelihoods])
            with self._file_errors_as_input_errors():
                self._db.execute("INSERT OR REPLACE INTO prompts VALUES (?, ?)", (key, scores))
            for index in indices:
                yield index, likelihoods

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _read_stored(self, keys: Iterable[str]) -> dict[str, list[Likelihood]]:
        """Return the likelihoods that the file has for these keys, by key."""
        # The keys are one JSON list, because SQLite limits the number of parameters.
        query = "SELECT key, scores FROM prompts WHERE key IN (SELECT value FROM json_each(?))"
        with self._file_errors_as_input_errors():
            rows = self._db.execute(query, (json.dumps(list(dict.fromkeys(keys))),))
            return {key: [Likelihood(*row) for row in json.loads(scores)] for key, scores in rows}

    @contextmanager
    def _file_errors_as_input_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise InputError(
                f"The scores in {self._path} cannot be read or written: {one_line(error)}. Choose "
                "another file, or move this file away to start a new one."
            ) from error
