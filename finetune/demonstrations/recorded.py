"""A record of likelihoods, by which an interrupted run resumes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from casewright.errors import InputError, told
from casewright.finetune.demonstrations.judged import AnswerScorer, Asked, Likelihood


class RecordedScorer:
    """A scorer that keeps its likelihoods in a SQLite file, and scores no answer twice.

    A question's likelihoods are in the file before they are yielded. The keys cover the model's
    weights and the whole prompt, so that several models may share a file. ``InputError`` if it
    cannot be opened or created.
    """

    def __init__(self, scorer: AnswerScorer, path: Path) -> None:
        self.scorer = scorer
        self.name = scorer.name
        self._path = path
        with self._file():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=30)
            # A killed process leaves its last write complete or absent.
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS likelihoods "
                "(key TEXT PRIMARY KEY, logprob REAL NOT NULL, tokens INTEGER NOT NULL)"
            )

    @property
    def signature(self) -> str:
        """The scorer's signature."""
        return self.scorer.signature

    def keys(self, question: Asked) -> Sequence[str]:
        """Return the scorer's keys."""
        return self.scorer.keys(question)

    def tokens(self, questions: Sequence[Asked]) -> int:
        """Return the number of tokens that the model reads for questions not in the file."""
        return self.scorer.tokens(self.missing(questions))

    def missing(self, questions: Sequence[Asked]) -> list[Asked]:
        """Return the questions with the answers that are not in the file, each question once."""
        by_keys = {tuple(self.scorer.keys(question)): question for question in questions}
        known = self._known(key for keys in by_keys for key in keys)
        return [
            _without(question, keys, known)
            for keys, question in by_keys.items()
            if not known.keys() >= set(keys)
        ]

    def score(self, questions: Sequence[Asked]) -> Iterator[tuple[int, Sequence[Likelihood]]]:
        """Yield each question's index and its answers' likelihoods; known ones come first."""
        all_keys = [tuple(self.scorer.keys(question)) for question in questions]
        known = self._known(key for keys in all_keys for key in keys)
        # The indices of equal questions, by their keys.
        unknown: dict[tuple[str, ...], list[int]] = {}
        for index, keys in enumerate(all_keys):
            if known.keys() >= set(keys):
                yield index, [known[key] for key in keys]
            else:
                unknown.setdefault(keys, []).append(index)
        pending = list(unknown.items())
        rest = [_without(questions[at[0]], keys, known) for keys, at in pending]
        for number, likelihoods in self.scorer.score(rest):
            keys, indices = pending[number]
            scored = dict(zip((k for k in keys if k not in known), likelihoods, strict=True))
            rows = [(key, item.logprob, item.tokens) for key, item in scored.items()]
            with self._file():
                self._db.execute("BEGIN")
                self._db.executemany("INSERT OR REPLACE INTO likelihoods VALUES (?, ?, ?)", rows)
                self._db.execute("COMMIT")
            for index in indices:
                yield index, [scored[key] if key in scored else known[key] for key in keys]

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _known(self, keys: Iterable[str]) -> dict[str, Likelihood]:
        wanted = json.dumps(list(dict.fromkeys(keys)))
        with self._file():
            rows = self._db.execute(
                "SELECT key, logprob, tokens FROM likelihoods "
                "WHERE key IN (SELECT value FROM json_each(?))",
                (wanted,),
            )
            return {key: Likelihood(logprob, tokens) for key, logprob, tokens in rows}

    @contextmanager
    def _file(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise InputError(
                f"The scores in {self._path} cannot be read or written: {told(error)}. Choose "
                "another file, or move that one away; a new one is then created."
            ) from error


def _without(question: Asked, keys: Sequence[str], known: Container[str]) -> Asked:
    """Return a question with those of its answers that are not known, of the answers' keys."""
    pairs = zip(question.answers, keys, strict=True)
    return replace(question, answers=tuple(answer for answer, key in pairs if key not in known))
