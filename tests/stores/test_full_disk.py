"""A full disk causes one clear error and loses no stored case; the next run is complete."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from casewright.errors import DiskFullError
from casewright.stores import CaseStore
from casewright.stores.documents.ingest import ingest
from casewright.stores.room import as_disk_error
from tests.stores.document_files import document_store, paragraph, write
from tests.stores.helpers import ROOT, note, note_schema
from tests.support.small_disk import filled, small_disk

#: Prints an error of Casewright in one line, as the command line does.
RUN = """
import sys
from casewright.errors import CasewrightError
from casewright.stores.documents.ingest import ingest
from tests.stores.document_files import document_store
try:
    with document_store(location=sys.argv[1]) as store:
        ingest(store, sys.argv[2])
        print(store.count())
except CasewrightError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 64) as mount_point:
        yield mount_point


def run_ingest(folder: Path, docs: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, str(folder), str(docs)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("free_bytes", [100_000, 2_000_000, 9_000_000])
def test_ingest_on_a_full_disk_prints_one_error_and_next_run_is_complete(
    disk: Path, tmp_path: Path, free_bytes: int
) -> None:
    texts = {f"{n:03}.txt": paragraph(str(n)) * 400 for n in range(20)}
    docs = write(tmp_path / "docs", texts)
    CaseStore(note_schema("other"), disk / "cases").close()
    filler = filled(disk, free_bytes)
    failed_run = run_ingest(disk / "cases", docs)
    assert (failed_run.returncode, failed_run.stdout) == (1, ""), failed_run.stderr
    errors = [line for line in failed_run.stderr.splitlines() if not line.startswith("Ingesting: ")]
    assert [line.partition(" The disk of")[0] for line in errors] == ["DiskFullError:"]
    filler.unlink()
    second_run = run_ingest(disk / "cases", docs)
    assert second_run.returncode == 0, second_run.stderr
    with document_store() as reference:
        ingest(reference, docs)
        assert second_run.stdout == f"{reference.count()}\n"


def test_add_on_a_full_disk_fails_and_keeps_stored_cases(disk: Path) -> None:
    with CaseStore(note_schema(), disk / "cases") as store:
        store.add([note(f"question {number}", number) for number in range(50)])
        filler = filled(disk, 1_000_000)
        with pytest.raises(DiskFullError, match="MB free"):
            store.add([note(f"more {number}", number) for number in range(50)])
        assert store.count() == len(store.search("question", 100)) == 50
    filler.unlink()
    with CaseStore(note_schema(), disk / "cases") as store:
        assert store.count() == len(store.all()) == 50


def test_full_disk_error_of_a_library_becomes_disk_full_error() -> None:
    library_error = RuntimeError("I/O error: No space left on device (os error 28)")
    assert isinstance(as_disk_error(library_error), DiskFullError)
    assert as_disk_error(RuntimeError("something else")) is None
