"""A full disk is one clear error; what was stored stays, and the next run is whole."""

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

#: Ends as the command line does: an error of ours is one line, and a signal is no error.
RUN = """
import sys
from casewright.errors import CasewrightError
from casewright.stores.documents.ingest import ingest
from tests.stores.document_files import document_store
try:
    with document_store(place=sys.argv[1]) as store:
        ingest(store, sys.argv[2])
        print(store.count())
except CasewrightError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 64) as mounted:
        yield mounted


def run_ingest(place: Path, docs: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, str(place), str(docs)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("left", [100_000, 2_000_000, 9_000_000])
def test_ingest_on_a_full_disk_prints_one_error_and_next_run_is_complete(
    disk: Path, tmp_path: Path, left: int
) -> None:
    texts = {f"{n:03}.txt": paragraph(str(n)) * 400 for n in range(20)}
    docs = write(tmp_path / "docs", texts)
    CaseStore(note_schema("other"), disk / "cases").close()
    filling = filled(disk, left)
    full = run_ingest(disk / "cases", docs)
    assert (full.returncode, full.stdout) == (1, ""), full.stderr
    errors = [line for line in full.stderr.splitlines() if not line.startswith("Ingesting: ")]
    assert [line.partition(" The disk of")[0] for line in errors] == ["DiskFullError:"]
    filling.unlink()
    again = run_ingest(disk / "cases", docs)
    assert again.returncode == 0, again.stderr
    with document_store() as fresh:
        ingest(fresh, docs)
        assert again.stdout == f"{fresh.count()}\n"


def test_add_on_a_full_disk_fails_and_keeps_stored_cases(disk: Path) -> None:
    with CaseStore(note_schema(), disk / "cases") as store:
        store.add([note(f"question {number}", number) for number in range(50)])
        filling = filled(disk, 1_000_000)
        with pytest.raises(DiskFullError, match="MB free"):
            store.add([note(f"more {number}", number) for number in range(50)])
        assert store.count() == len(store.search("question", 100)) == 50
    filling.unlink()
    with CaseStore(note_schema(), disk / "cases") as store:
        assert store.count() == len(store.all()) == 50


def test_full_disk_error_of_a_library_becomes_disk_full_error() -> None:
    hidden = RuntimeError("I/O error: No space left on device (os error 28)")
    assert isinstance(as_disk_error(hidden), DiskFullError)
    assert as_disk_error(RuntimeError("something else")) is None
