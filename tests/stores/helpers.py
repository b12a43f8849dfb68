"""Schemas and cases for the tests of stores, and a process that holds a store's folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.stores import Case, CaseSchema, CaseStore, Encoder, Facet, text_facet
from casewright.stores.facet import Components
from tests.support.encoders import HashingEncoder

ROOT = Path(__file__).parents[2]


def note_schema(name: str = "notes", encoder: Encoder | None = None, **options: Any) -> CaseSchema:
    model = encoder or HashingEncoder()
    facets = (text_facet("question", model, weight=0.75), text_facet("support", model, weight=0.25))
    return CaseSchema(name, facets, **options)


def note(question: str, solution: Any = None, **fields: Any) -> Case:
    return Case({"question": question}, solution, **fields)


def vector_facet(name: str, dimension: int, weight: float = 1.0) -> Facet:
    """Return a facet whose vector is its component, so that tests write the vectors themselves."""

    def embed(problems: Sequence[Components]) -> NDArray[np.float32]:
        return np.array([problem[name] for problem in problems], dtype=np.float32)

    return Facet(name, (name,), dimension, embed, embed, str, model="plain", weight=weight)


def number_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def new_folder(folder: Path) -> Path:
    """Make a folder with an empty store, and return it."""
    CaseStore(note_schema(), folder).close()
    return folder


HOLDER = """
import sys
from casewright.stores import Case, CaseStore
from tests.stores.helpers import note, note_schema

store = CaseStore(note_schema(), sys.argv[1])
large = {str(i): i for i in range(int(sys.argv[3]))}
store.add([note(f"kept question {i}", large) for i in range(int(sys.argv[2]))])
print("ready", flush=True)
order = sys.stdin.readline().strip()
if order == "add and close":
    store.add([note("the last question", "last")])
store.close()
print("closed", flush=True)
sys.stdin.readline()
"""


@contextmanager
def hold_folder(folder: Path, cases: int = 1, large: int = 0) -> Iterator[subprocess.Popen[str]]:
    """Run a process that holds the folder until it reads ``close`` or is killed.

    Args:
        folder: The folder of the store.
        cases: The number of cases that it adds first.
        large: The number of entries of each case's solution; large cases take long to open.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), str(cases), str(large)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def send_order(process: subprocess.Popen[str], order: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{order}\n")
    process.stdin.flush()
