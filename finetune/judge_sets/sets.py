"""Sets of cases and labelled questions; each question is in the training or the test half."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from casewright.stores import Case, CaseSchema, CaseStore, Encoder, document_schema, text_facet
from casewright.stores.feedback import SentenceStrategy, Strategy

#: The kind of the cases: paragraphs of text, or chunks of source code.
CaseKind = Literal["paragraphs", "code"]
#: Names of the two sets about installed packages: the questions name, or describe, a function.
CODE, DESCRIBED = "code", "code_described"
#: The name of the set of SciFact's claims, which cite abstracts.
SCIFACT = "scifact"


def is_training(question_id: str) -> bool:
    """Return True if a question is in the training half, that is, its id has an even SHA-256.

    A question's half is the same in every set, with any limit, on every machine.
    """
    return hashlib.sha256(question_id.encode()).digest()[-1] % 2 == 0


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question, and the ids of all cases relevant to it."""

    id: str
    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """A store of cases and labelled questions about them, to train and test a judge.

    The judge is trained with each of ``strategies``, which make the searches of later rounds.
    ``origin`` has facts about the set, which are stored with the judge.
    """

    name: str
    store: CaseStore
    training: Sequence[LabelledQuestion]
    test: Sequence[LabelledQuestion]
    strategies: Sequence[Strategy] = (SentenceStrategy(),)
    origin: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FeedbackSet:
    """Cases that are not yet in a store, and labelled questions about them.

    Attributes:
        cases: All cases with their ids, also those that are relevant to no question.
        questions: The questions of both halves. If two sets ask for the same function, the two
            questions have the same id.
        origin: Facts about the set's origin, printed with the figures.
    """

    name: str
    kind: CaseKind
    cases: Sequence[Case]
    questions: Sequence[LabelledQuestion]
    origin: Mapping[str, Any] = field(default_factory=dict)

    def half(self, *, training: bool) -> list[LabelledQuestion]:
        """Return the questions of the training half, or of the test half, in order."""
        return [question for question in self.questions if is_training(question.id) is training]

    def store(self, encoder: Encoder, location: str | Path = ":memory:") -> CaseStore:
        """Return an open store with the cases; searches are faster if it is in a folder."""
        has_titles = any("title" in case.problem for case in self.cases)
        store = CaseStore(schema_of(self.name, self.kind, encoder, has_titles=has_titles), location)
        try:
            store.add(self.cases)
        except BaseException:
            store.close()
            raise
        return store

    def size(self) -> dict[str, int]:
        """Return the number of cases, and the numbers of training questions and test questions."""
        training = len(self.half(training=True))
        return {
            "cases": len(self.cases),
            "questions_training": training,
            "questions_test": len(self.questions) - training,
        }

    def limited(self, limit: int | None) -> FeedbackSet:
        """Return the set with the first questions of either half, at most ``limit`` together."""
        if limit is None:
            return self
        test = self.half(training=False)[: limit // 2]
        training = self.half(training=True)[: limit - limit // 2]
        ids = {question.id for question in (*test, *training)}
        return replace(self, questions=[q for q in self.questions if q.id in ids])


def schema_of(
    name: str, kind: CaseKind, encoder: Encoder, *, has_titles: bool = True
) -> CaseSchema:
    """Return a set's schema: for code, the schema of ``ingest``; else the facets text and title."""
    collection = re.sub(r"[^A-Za-z0-9_-]", "_", f"bench_feedback_{name}")
    if kind == "code":
        return document_schema(encoder, collection)
    facets = (text_facet("text", encoder, weight=0.7), text_facet("title", encoder, weight=0.3))
    return CaseSchema(collection, facets if has_titles else facets[:1])
