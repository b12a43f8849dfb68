"""What the feedback bench is run on: cases, and questions with every case that is relevant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from casewright.bench.feedback.split import is_training
from casewright.errors import InputError
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


@dataclass(frozen=True, slots=True)
class FeedbackQuestion:
    """A question, and what answers it.

    Attributes:
        id: Names it within its set; which half it is of follows from it, see ``is_training``.
            Questions of two sets on one thing have the same id, so that none is tested on what
            another one was trained on.
        text: The question.
        relevant: The ids of all cases that are needed for the answer; at least one.
    """

    id: str
    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class FeedbackSet:
    """Cases with the components ``title`` and ``text``, and the questions to ask of them.

    Attributes:
        name: How the set is called in tables.
        kind: What the cases are.
        cases: All of them, those that no question needs too; each has its id.
        questions: Of both halves.
        settings: What the set was made of, to be printed with the figures.
    """

    name: str
    kind: Kind
    cases: Sequence[Case]
    questions: Sequence[FeedbackQuestion]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def half(self, *, training: bool) -> list[FeedbackQuestion]:
        """Return the questions of the training half, or of the test half, in their order."""
        return [question for question in self.questions if is_training(question.id) is training]

    def schema(self, encoder: Encoder) -> CaseSchema:
        """Return the schema of the cases: facets ``text`` and ``title``."""
        return schema_of(self.name, self.kind, encoder)

    def store(self, encoder: Encoder, location: str | Path = ":memory:") -> CaseStore:
        """Return a store that holds the cases; who asked for it closes it.

        Args:
            encoder: Embeds them.
            location: Memory, or an empty folder: where Qdrant Edge keeps that, a search takes a
                quarter of the time.
        """
        store = CaseStore(self.schema(encoder), location)
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


def schema_of(name: str, kind: Kind, encoder: Encoder) -> CaseSchema:
    """Return the schema of a set; that of code is the one that ``ingest`` uses."""
    collection = f"bench_feedback_{name}"
    if kind == "code":
        return document_schema(encoder, collection)
    facets = (text_facet("text", encoder, weight=0.7), text_facet("title", encoder, weight=0.3))
    return CaseSchema(collection, facets)


def find_sets(
    data: Path | None, only: str | None = None, limit: int | None = None
) -> list[FeedbackSet]:
    """Read the sets that a place holds, and make those of code.

    Args:
        data: A folder with some of the three multi-hop files or the files of SciFact, or with
            folders ``multihop`` and ``scifact`` that hold them; ``None`` takes the sets of code
            alone.
        only: The name of the one set that is wanted.
        limit: At most so many questions of each set, of both halves as many.

    Raises:
        InputError: The place holds no such set, or a file of another form; or too few questions
            are left to have one in each half.
        DependencyError: A set of code is wanted, and what splits code is not installed.
    """
    from casewright.bench.feedback.code import code_set, read_code
    from casewright.bench.feedback.described import described_set
    from casewright.bench.feedback.multihop import feedback_set
    from casewright.bench.feedback.scifact import holds_scifact, scifact_set
    from casewright.bench.legal.multihop import FILES

    there: list[tuple[str, Callable[[], FeedbackSet]]] = []
    if data is not None:
        if not data.is_dir():
            raise InputError(f"--data {data}: there is no such folder. {_TELL}")
        for name, file_name in FILES.items():
            files = (folder / file_name for folder in (data, data / "multihop"))
            if file := next((file for file in files if file.is_file()), None):
                there.append((name, partial(feedback_set, file, name)))
        if folder := next((one for one in (data, data / "scifact") if holds_scifact(one)), None):
            there.append((SCIFACT, partial(scifact_set, folder)))
        if not there and only not in (CODE, DESCRIBED):
            raise InputError(f"--data {data}: it holds no set of questions. {_TELL}")
    # The packages are read and split once for both sets, and not at all for the others.
    corpus = cache(read_code)
    there.append((CODE, lambda: code_set(corpus())))
    there.append((DESCRIBED, lambda: described_set(corpus())))
    chosen = [read() for name, read in there if only in (None, name)]
    if not chosen:
        raise InputError(
            f"There is no set {only!r} here. There are: {', '.join(name for name, _ in there)}. "
            f"Sets are: {', '.join([*FILES, SCIFACT, CODE, DESCRIBED])}; all but the last two are "
            "read from --data."
        )
    limited = [found if limit is None else _limited(found, limit) for found in chosen]
    for found in limited:
        size = found.size()
        if not (size["questions_training"] and size["questions_test"]):
            raise InputError(
                f"Set {found.name} has {size['questions_training']} questions to train with and "
                f"{size['questions_test']} to test with. It needs one of each at least: give a "
                "larger --limit, or a file with more questions."
            )
    return limited


def _limited(found: FeedbackSet, limit: int) -> FeedbackSet:
    """Return a set with its first questions of either half only, in their order."""
    test = found.half(training=False)[: limit // 2]
    training = found.half(training=True)[: limit - limit // 2]
    kept = {question.id for question in (*test, *training)}
    questions = [question for question in found.questions if question.id in kept]
    return replace(found, questions=questions)


_TELL = (
    "Give a folder with hotpotqa-dev.jsonl, 2wikimultihop-dev.jsonl or musique-dev.jsonl, or with "
    "SciFact's corpus.jsonl and claims, or one with these in multihop and scifact; without --data "
    "the sets of code alone are measured."
)
