"""Likelihoods that were scored once are not scored again, by a killed run's successor neither."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from casewright.errors import InputError, told
from casewright.finetune.demonstrations.judged import AnswerScorer, Asked, Likelihood, LocalScorer


class RecordedScorer:
    """A scorer that keeps what it scored in a file: one SQLite database.

    Each question's likelihoods are in the file before the next ones are handed on. What is asked
    twice, in one call or in two runs, is scored once. The keys hold the model's weights and the
    whole prompt, so that several models may share a file.

    Args:
        scorer: What scores.
        path: The file; made where it is not there.

    Raises:
        InputError: The file cannot be opened, or is no such file.
    """

    def __init__(self, scorer: AnswerScorer, path: Path) -> None:
        self.scorer = scorer
        self.name = scorer.name
        self._path = path
        with self._file():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=30)
            # A write of a killed process is whole, or is not there.
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS likelihoods "
                "(key TEXT PRIMARY KEY, logprob REAL NOT NULL, tokens INTEGER NOT NULL)"
            )

    @property
    def signature(self) -> str:
        """The scorer's signature.

        Raises:
            InputError: It has none: its likelihoods are not of answers as texts.
        """
        if not self.scores_texts:
            raise InputError(
                f"{self.name!r} tells no probabilities of texts that it is given, from which the "
                "demonstrations' quality is measured. Take a local model, or leave quality out."
            )
        return cast("LocalScorer", self.scorer).signature

    @property
    def scores_texts(self) -> bool:
        """True where its likelihoods are of answers as texts."""
        return hasattr(self.scorer, "signature")

    def keys(self, asked: Asked) -> Sequence[str]:
        """Return the scorer's keys."""
        return self.scorer.keys(asked)

    def tokens(self, asked: Sequence[Asked]) -> int:
        """Return how many tokens the model reads for what is not in the file yet."""
        return self.scorer.tokens(self.missing(asked))

    def missing(self, asked: Sequence[Asked]) -> list[Asked]:
        """Return what would be asked of the model, each once."""
        by_keys = {tuple(self.scorer.keys(question)): question for question in asked}
        known = self._known(key for part in by_keys for key in part)
        return [question for part, question in by_keys.items() if not known.keys() >= set(part)]

    def score(self, asked: Sequence[Asked]) -> Iterator[tuple[int, Sequence[Likelihood]]]:
        """Yield each question's place and its answers' likelihoods; those known come first."""
        keys = [tuple(self.scorer.keys(question)) for question in asked]
        known = self._known(key for part in keys for key in part)
        # Several places may ask for the same.
        wanted: dict[tuple[str, ...], list[int]] = {}
        for index, part in enumerate(keys):
            if known.keys() >= set(part):
                yield index, [known[key] for key in part]
            else:
                wanted.setdefault(part, []).append(index)
        parts = list(wanted)
        for number, output in self.scorer.score([asked[wanted[part][0]] for part in parts]):
            part = parts[number]
            rows = [
                (k, result.logprob, result.tokens) for k, result in zip(part, output, strict=True)
            ]
            with self._file():
                self._db.execute("BEGIN")
                self._db.executemany("INSERT OR REPLACE INTO likelihoods VALUES (?, ?, ?)", rows)
                self._db.execute("COMMIT")
            for index in wanted[part]:
                yield index, output

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _known(self, keys: Iterable[str]) -> dict[str, Likelihood]:
        asked = json.dumps(list(dict.fromkeys(keys)))
        with self._file():
            rows = self._db.execute(
                "SELECT key, logprob, tokens FROM likelihoods "
                "WHERE key IN (SELECT value FROM json_each(?))",
                (asked,),
            )
            return {key: Likelihood(logprob, tokens) for key, logprob, tokens in rows}

    @contextmanager
    def _file(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise InputError(
                f"The scores in {self._path} cannot be read or written: {told(error)}. Choose "
                "another file, or move that one away; it is then made anew."
            ) from error
