"""A run that was killed leaves a store that the next run completes."""

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
RUN = """
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
AGAIN = """
import sys
from casewright.stores.documents.ingest import ingest
from tests.stores.document_files import document_store
report = ingest(document_store(place=sys.argv[1]), sys.argv[2])
print(report.unchanged, report.added, {"llama_index.core", "pypdf"} & set(sys.modules))
"""


def text(number: int) -> str:
    return "\n\n".join(paragraph(f"{chr(97 + part)}{number}") for part in range(PARAGRAPHS))


def killed_in_the_middle(place: Path, folder: Path, batches: int) -> None:
    """Run in another process, and kill that when it encodes its next batch."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(place), str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    # Two facets a batch.
    for _ in range(2 * batches + 1):
        assert process.stdout.readline() == "encoding\n"
    process.kill()
    process.wait()
    process.stdout.close()


def test_killed_first_run_is_completed_by_the_next_run(folder: Path, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {f"{n:03}.txt": text(n) for n in range(FILES)})
    killed_in_the_middle(folder, docs, batches=1)
    encoder = HashingEncoder()
    with document_store(encoder, str(folder)) as store:
        left = store.count()
        assert 0 < left < FILES * PARAGRAPHS
        report = ingest(store, docs)
        assert report.added + left == store.count()
        assert report.unchanged > 0
        assert sum(map(len, encoder.calls)) == 2 * report.added
        with document_store() as fresh:
            ingest(fresh, docs)
            assert contents(fresh) == contents(store)


def test_killed_later_run_is_completed_by_the_next_run(folder: Path, tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {f"{n:03}.txt": text(n) for n in range(FILES)})
    with document_store(place=str(folder)) as store:
        ingest(store, docs)
    # Most of each file's passages are others now, and some files are gone.
    letters = str.maketrans("cdefghijkl", "qrstuvwxyz")
    write(docs, {f"{n:03}.txt": text(n).translate(letters) for n in range(FILES)})
    for number in range(0, FILES, 10):
        (docs / f"{number:03}.txt").unlink()
    killed_in_the_middle(folder, docs, batches=1)
    with document_store(place=str(folder)) as store:
        done = sum(case.solution[0] in "qrstuvwxyz" for case in store.all())
        report = ingest(store, docs)
        assert 0 < done < done + report.added == 27 * 10
        assert report.removed > 0
        with document_store() as fresh:
            ingest(fresh, docs)
            assert contents(fresh) == contents(store)


def test_unchanged_files_are_not_split_again(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"a.md": "# A\n\nWords.\n", "b.py": "x = 1\n"})
    place = str(tmp_path / "cases")
    with document_store(place=place) as store:
        added = ingest(store, docs).added
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, place, str(docs)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=True,
    )
    assert done.stdout == f"{added} 0 set()\n"


@pytest.mark.parametrize("missing", [1, 3])
def test_run_restores_deleted_cases_of_an_unchanged_file(tmp_path: Path, missing: int) -> None:
    docs = write(tmp_path / "docs", {"a.txt": text(1), "b.txt": text(2)})
    with document_store() as store:
        ingest(store, docs)
        before = contents(store)
        lost = [case.id for case in store.all({"source": "a.txt"})][:missing]
        store.delete(lost)
        report = ingest(store, docs)
        assert report.added == missing
        assert contents(store) == before
