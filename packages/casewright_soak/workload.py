"""The work that trials interrupt: writes to a store of notes, and ingestions of documents."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from casewright.stores import (
    Case,
    CaseSchema,
    CaseStore,
    Change,
    document_schema,
    ingest,
    text_facet,
)
from casewright.stores.documents.file_walk import Kind
from casewright.stores.documents.reader import read_document
from casewright.stores.documents.splitter import Chunk, split
from casewright.stores.documents.worker import Worker

#: Number of notes in a batch, and number of notes in a store.
BATCH_SIZE, NOTE_COUNT = 20, 60
QUESTIONS = ("note 7 of the red mill", "note 31", "the saw", "oil")
THINGS = ("mill", "saw", "lathe", "drill", "press")
COLOURS = ("red", "blue", "green")


class WordEncoder:
    """A fast encoder: a bag of hashed words."""

    name, dimension = "words-32", 32

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors (n, 32) of n texts."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text):
                hashed = zlib.crc32(word.encode())
                vectors[row, hashed % self.dimension] += 1.0 if hashed >> 31 else -1.0
        return vectors


def schema() -> CaseSchema:
    """Return the schema of notes."""
    encoder = WordEncoder()
    facets = (text_facet("question", encoder, weight=0.7), text_facet("place", encoder, weight=0.3))
    return CaseSchema("notes", facets)


def notes(first: int, end: int) -> list[Case]:
    """Return the notes with numbers from ``first`` to ``end`` - 1."""
    cases = []
    for n in range(first, end):
        question = f"note {n} of the {COLOURS[n % 3]} {THINGS[n % 5]}"
        problem = {"question": question, "place": f"hall {n % 7}"}
        cases.append(Case(problem, f"answer {n}", metadata={"number": n}, quality=(n % 10) / 10))
    return cases


def write_notes(folder: Path, count: int = NOTE_COUNT) -> None:
    """Write notes in batches; reopen the store; change some notes, delete some and add one."""
    with CaseStore(schema(), folder) as store:
        for first in range(0, count, BATCH_SIZE):
            store.add(notes(first, first + BATCH_SIZE))
    with CaseStore(schema(), folder) as store:
        ids = [case.id for case in store.all()]
        store.update({id_: Change(quality=0.5) for id_ in ids[:5]})
        store.delete(ids[5:10])
        store.retain(notes(count, count + 1)[0])


def store_contents(folder: Path) -> dict[str, Any]:
    """Return a store's count, cases and search results, for a comparison with another store."""
    with CaseStore(schema(), folder) as store:
        found = [store.search(question, 10) for question in QUESTIONS]
        return {
            "count": store.count(),
            "cases": {case.id: case.to_json() for case in store.all()},
            "found": [[(hit.case.id, round(hit.score, 5)) for hit in hits] for hits in found],
            "filtered": len(store.all({"number": {"gte": 20}})),
        }


def write_documents(folder: Path, file_count: int = 6) -> Path:
    """Write documents of several kinds, and return their folder."""
    folder.mkdir(parents=True)
    for number in range(file_count):
        words = " ".join(f"word{number * n} of the {THINGS[n % 5]}." for n in range(120))
        ending, text = (
            ("md", f"# Part {number}\n\n{words}\n\n## More\n\n{words}\n"),
            ("html", f"<h1>Part {number}</h1><p>{words}</p>"),
            ("py", f"def part_{number}():\n    return 1\n\n\ndef other():\n    return 2\n"),
        )[number % 3]
        (folder / f"part{number}.{ending}").write_text(text)
    return folder


def ingest_and_read(folder: Path, documents: Path) -> dict[str, str]:
    """Ingest a folder of documents into a store, and return the store's chunks by id.

    The documents are read in this process, because the start of another process takes long.
    """
    store = CaseStore(document_schema(WordEncoder()), folder)
    with store, patch.object(Worker, "chunks", _chunks):
        ingest(store, documents, root="documents", progress=False)
        return {case.id: str(case.solution) for case in store.all()}


def _chunks(worker: Worker, data: bytes, kind: Kind, seconds: float) -> tuple[list[Chunk], str]:
    return split(read_document(data, kind)), ""
