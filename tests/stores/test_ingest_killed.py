"""The next ingestion completes a store after a killed ingestion."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from casewright.stores.documents.ingest import ingest
from tests.stores.document_files import contents, document_store, paragraph, write
from tests.stores.helpers import ROOT
from tests.support.encoders import HashingEncoder

FILES, PARAGRAPHS = 30, 12
SLOW_RUN = """
import sys, time
from casewright.stores.documents.ingest import ingest
from tests.stores.document_files import document_store
from tests.support.encoders import HashingEncoder

class Slow(HashingEncoder):
    def embed(self, texts):
        print("encoding", flush=True)
        time.sleep(0.05)
        return super().embed(texts)

store = document_store(Slow(), sys.argv[1])
ingest(store, sys.argv[2])
print("done", flush=True)
"""
SECOND_RUN = """
import sys
from casewright.stores.documents.ingest import ingest
from tests.stores.document_files import document_store
report = ingest(document_store(location=sys.argv[1]), sys.argv[2])
print(report.unchanged, report.added, {"llama_index.core", "pypdf"} & set(sys.modules))
"""


def file_text(number: int) -> str:
    return "\n\n".join(paragraph(f"{chr(97 + part)}{number}") for part in range(PARAGRAPHS))


def kill_during_ingest(store_folder: Path, docs: Path, batches: int) -> None:
    """Ingest in another process, and kill it when it encodes a batch after ``batches``."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_RUN, str(store_folder), str(docs)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    # The encoder is called once for each of the two facets of a batch.
    for _ in range(2 * batches + 1):
        assert process.stdout.readline() == "encoding\n"
    process.kill()
    process.wait()
    process.stdout.close()


def test_killed_first_run_is_completed_by_the_next_run(folder: Path, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {f"{n:03}.txt": file_text(n) for n in range(FILES)})
    kill_during_ingest(folder, docs, batches=1)
    encoder = HashingEncoder()
    with document_store(encoder, str(folder)) as store:
        stored = store.count()
        assert 0 < stored < FILES * PARAGRAPHS
        report = ingest(store, docs)
        assert report.added + stored == store.count()
        assert report.unchanged > 0
        assert sum(map(len, encoder.calls)) == 2 * report.added
        with document_store() as fresh:
            ingest(fresh, docs)
            assert contents(fresh) == contents(store)


def test_killed_later_run_is_completed_by_the_next_run(folder: Path, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {f"{n:03}.txt": file_text(n) for n in range(FILES)})
    with document_store(location=str(folder)) as store:
        ingest(store, docs)
    # Change most paragraphs of each file, and delete some files.
    letters = str.maketrans("cdefghijkl", "qrstuvwxyz")
    write(docs, {f"{n:03}.txt": file_text(n).translate(letters) for n in range(FILES)})
    for number in range(0, FILES, 10):
        (docs / f"{number:03}.txt").unlink()
    kill_during_ingest(folder, docs, batches=1)
    with document_store(location=str(folder)) as store:
        updated = sum(case.solution[0] in "qrstuvwxyz" for case in store.all())
        report = ingest(store, docs)
        assert 0 < updated < updated + report.added == 27 * 10
        assert report.removed > 0
        with document_store() as fresh:
            ingest(fresh, docs)
            assert contents(fresh) == contents(store)


def test_unchanged_files_are_not_split_again(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"a.md": "# A\n\nWords.\n", "b.py": "x = 1\n"})
    store_folder = str(tmp_path / "cases")
    with document_store(location=store_folder) as store:
        added = ingest(store, docs).added
    process = subprocess.run(
        [sys.executable, "-c", SECOND_RUN, store_folder, str(docs)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=True,
    )
    assert process.stdout == f"{added} 0 set()\n"


@pytest.mark.parametrize("missing", [1, 3])
def test_run_restores_deleted_cases_of_an_unchanged_file(tmp_path: Path, missing: int) -> None:
    docs = write(tmp_path / "docs", {"a.txt": file_text(1), "b.txt": file_text(2)})
    with document_store() as store:
        ingest(store, docs)
        before = contents(store)
        deleted_ids = [case.id for case in store.all({"source": "a.txt"})][:missing]
        store.delete(deleted_ids)
        report = ingest(store, docs)
        assert report.added == missing
        assert contents(store) == before
