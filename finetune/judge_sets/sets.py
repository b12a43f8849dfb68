"""Cases, and questions with every case that is relevant: some to train with, some to test with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from casewright.finetune.judge_data import LabelledQuestion
from casewright.stores import (
    Case,
    CaseSchema,
    CaseStore,
    Encoder,
    document_schema,
    text_facet,
)

#: What the cases are: paragraphs of an encyclopedia, or chunks of source code.
Kind = Literal["paragraphs", "code"]
#: The sets that are made of installed packages: the questions name their function, or describe it.
CODE, DESCRIBED = "code", "code_described"
#: The set of claims and the abstracts that they cite.
SCIFACT = "scifact"


def is_training(question_id: str) -> bool:
    """Return whether a question is for training; those that are not are for testing.

    The half follows from the id alone (the parity of its SHA-256), so that it is the same in every
    set, with any limit, and on every machine: no run can measure by what another one trained on.
    """
    return hashlib.sha256(question_id.encode()).digest()[-1] % 2 == 0


@dataclass(frozen=True, slots=True)
class FeedbackSet:
    """Cases with the components ``title`` and ``text``, and the questions to ask of them.

    Attributes:
        name: How the set is called in tables.
        kind: What the cases are.
        cases: All of them, those that no question needs too; each has its id.
        questions: Of both halves. Those of two sets on one thing have the same id, so that none is
            tested on what another one was trained on.
        settings: What the set was made of, to be printed with the figures.
    """

    name: str
    kind: Kind
    cases: Sequence[Case]
    questions: Sequence[LabelledQuestion]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def half(self, *, training: bool) -> list[LabelledQuestion]:
        """Return the questions of the training half, or of the test half, in their order."""
        return [question for question in self.questions if is_training(question.id) is training]

    def store(self, encoder: Encoder, location: str | Path = ":memory:") -> CaseStore:
        """Return a store that holds the cases; who asked for it closes it.

        Args:
            encoder: Embeds them.
            location: Memory, or an empty folder: where Qdrant Edge keeps that, a search takes a
                quarter of the time.
        """
        store = CaseStore(schema_of(self.name, self.kind, encoder), location)
        try:
            store.add(self.cases)
        except BaseException:
            store.close()
            raise
        return store

    def size(self) -> dict[str, int]:
        """Return how many cases there are, and questions of either half."""
        training = len(self.half(training=True))
        return {
            "cases": len(self.cases),
            "questions_training": training,
            "questions_test": len(self.questions) - training,
        }

    def limited(self, limit: int | None) -> FeedbackSet:
        """Return the set with its first questions only, of either half as many, in their order."""
        if limit is None:
            return self
        test = self.half(training=False)[: limit // 2]
        kept = {q.id for q in (*test, *self.half(training=True)[: limit - limit // 2])}
        return replace(self, questions=[q for q in self.questions if q.id in kept])


def schema_of(name: str, kind: Kind, encoder: Encoder) -> CaseSchema:
    """Return the schema of a set; that of code is the one that ``ingest`` uses."""
    collection = f"bench_feedback_{name}"
    if kind == "code":
        return document_schema(encoder, collection)
    facets = (text_facet("text", encoder, weight=0.7), text_facet("title", encoder, weight=0.3))
    return CaseSchema(collection, facets)
