"""Files that cannot be read or are no documents are reported; all others are stored."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from casewright.stores import CaseStore
from casewright.stores.documents.file_walk import MAX_DATA_BYTES
from casewright.stores.documents.ingest import ingest
from tests.stores.document_files import (
    chunks_of,
    contents,
    document_store,
    encrypted_pdf,
    paragraph,
    pdf,
    sources,
    write,
)
from tests.stores.helpers import ROOT, note
from tests.support.encoders import BrokenEncoder


@pytest.fixture
def store() -> Iterator[CaseStore]:
    with document_store() as case_store:
        yield case_store


@contextmanager
def without_root_rights() -> Iterator[None]:
    """Run without the rights of root, who may read any file."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("zero.txt", b"some\0text", "zero bytes"),
        ("zero.md", b"# some\0text", "zero bytes"),
        ("cut.docx", b"PK\x03\x04 no archive", "not a readable DOCX file"),
        ("cut.ipynb", b'{"cells": 1', "not a readable notebook"),
        ("odd.html", b'<meta charset="klingon"><p>x', "klingon, which is not known"),
        ("odd.py", b"# coding: klingon\nx = 1\n", "klingon, which is not known"),
        ("cut.pdf", pdf(["some words"])[:300], "not a readable PDF"),
        ("none.pdf", b"", "not a readable PDF"),
        ("text.pdf", b"these are words", "not a readable PDF"),
        ("locked.pdf", encrypted_pdf("open sesame"), "encrypted"),
        ("scan.pdf", pdf(["", ""]), "no text; they may be scanned"),
        ("large.txt", b"words " * 200_000, "1,200,000 bytes; at most 1,000,000"),
    ],
)
def test_unreadable_file_is_reported_and_other_files_are_stored(
    store: CaseStore, tmp_path: Path, name: str, data: bytes, reason: str
) -> None:
    folder = write(tmp_path / "docs", {"a.txt": "Red apples.", name: data, "z.txt": "Plums."})
    report = ingest(store, folder, max_bytes=1_000_000)
    assert [path for path, _ in report.failed] == [name]
    assert reason in report.failed[0][1]
    assert sources(store) == ["a.txt", "z.txt"]
    assert (report.files, report.skipped) == (2, ())


def test_html_page_that_breaks_the_parser_does_not_stop_the_run(
    store: CaseStore, tmp_path: Path
) -> None:
    # Some versions of Python read this page, others raise an unexpected error.
    files = {"a.txt": "Red apples.", "torn.html": "<p>words<![a&", "z.txt": "Plums."}
    report = ingest(store, write(tmp_path / "docs", files))
    assert report.files + len(report.failed) == 3
    assert {"a.txt", "z.txt"} <= set(sources(store))


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("blob.bin", b"\x80\x00\x01\x02", "not text"),
        ("archive.zip", b"PK\x03\x04\xff\xfe", "not text"),
        ("empty.txt", b"", "no text"),
        ("blank.py", b"\n \n\t\n", "no text"),
        ("dump.json", b"[" + b"1," * MAX_DATA_BYTES + b"1]", "data, and has more than"),
        ("dump.strange", b"a " * MAX_DATA_BYTES, "an unknown type, and has more than"),
        ("packed.min.js", b"var a=1;", "made by a program"),
        ("drawing.svg", b"<svg/>", "made by a program"),
    ],
)
def test_file_that_is_not_a_document_is_skipped_and_reported(
    store: CaseStore, tmp_path: Path, name: str, data: bytes, reason: str
) -> None:
    folder = write(tmp_path / "docs", {"a.txt": "Red apples.", name: data})
    report = ingest(store, folder)
    assert [path for path, _ in report.skipped] == [name]
    assert reason in report.skipped[0][1]
    assert (report.failed, report.files, sources(store)) == ((), 1, ["a.txt"])


@pytest.mark.parametrize(
    ("name", "data", "word"),
    [
        ("marked.txt", "\ufeffcaf\u00e9 noir".encode(), "caf\u00e9"),
        ("wide.txt", "caf\u00e9 noir".encode("utf-16"), "caf\u00e9"),
        ("wider.txt", "caf\u00e9 noir".encode("utf-32"), "caf\u00e9"),
        ("said.html", '<meta charset="latin-1"><p>caf\u00e9'.encode("latin-1"), "caf\u00e9"),
        ("said.py", "# -*- coding: latin-1 -*-\nx = 'caf\u00e9'".encode("latin-1"), "caf\u00e9"),
        ("lines.txt", b"red\r\ngreen\rblue", "red\ngreen\nblue"),
    ],
)
def test_declared_encoding_of_a_file_is_used(
    store: CaseStore, tmp_path: Path, name: str, data: bytes, word: str
) -> None:
    report = ingest(store, write(tmp_path / "docs", {name: data}))
    assert report.failed == ()
    assert word in chunks_of(store, name)[0]["text"]


def test_file_and_folder_without_permission_are_reported_and_keep_stored_cases(
    store: CaseStore,
) -> None:
    # Only its owner may enter pytest's folder.
    with TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        folder = write(
            root / "docs", {"a.txt": "Red.", "b.txt": "Green.", "in/c.txt": "Blue.", "d.txt": "x"}
        )
        ingest(store, folder)
        (folder / "b.txt").chmod(0)
        (folder / "in").chmod(0)
        (folder / "d.txt").unlink()
        try:
            with without_root_rights():
                report = ingest(store, folder)
        finally:
            (folder / "in").chmod(0o755)
        assert [path for path, _ in report.failed] == ["b.txt", "in"]
        assert all("Permission denied" in reason for _, reason in report.failed)
        assert (report.files, report.unchanged, report.removed) == (1, 1, 1)
        assert sources(store) == ["a.txt", "b.txt", "in/c.txt"]


def test_symbolic_links_and_pipes_are_not_read(store: CaseStore, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.txt": "Not to be read."})
    folder = write(tmp_path / "docs", {"a.txt": "Red apples.", "in/b.txt": "Green pears."})
    (folder / "same.txt").symlink_to("a.txt")
    (folder / "in" / "up").symlink_to(folder)
    (folder / "gone.txt").symlink_to("nothing.txt")
    (folder / "ring.txt").symlink_to("ring.txt")
    (folder / "out.txt").symlink_to(outside / "secret.txt")
    (folder / "outs").symlink_to(outside)
    os.mkfifo(folder / "pipe.txt")
    report = ingest(store, folder)
    assert sources(store) == ["a.txt", "in/b.txt"]
    assert report.failed == (
        ("gone.txt", "it is a broken link"),
        ("ring.txt", "it is a link in a ring of links"),
    )
    assert report.skipped == (
        ("out.txt", "it is a link that leads out of the folder"),
        ("outs", "it is a link that leads out of the folder"),
        ("pipe.txt", "it is not a regular file"),
    )


def test_file_name_that_is_not_unicode_is_reported(store: CaseStore, tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", {"a.txt": "Red apples."})
    try:
        Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")).write_text("x")
    except OSError:
        pytest.skip("this disk takes no such name")
    report = ingest(store, folder)
    assert report.failed == (("caf\\udce9.txt", "its name is not valid Unicode"),)
    assert sources(store) == ["a.txt"]


def test_file_that_becomes_unreadable_keeps_its_stored_cases(
    store: CaseStore, tmp_path: Path
) -> None:
    folder = write(tmp_path / "docs", {"a.pdf": pdf(["some words"]), "b.txt": "Red apples."})
    ingest(store, folder)
    before = contents(store)
    write(folder, {"a.pdf": b"half a fi"})
    report = ingest(store, folder)
    assert ([path for path, _ in report.failed], report.removed) == (["a.pdf"], 0)
    assert contents(store) == before


def test_hidden_installed_and_cached_files_and_case_stores_are_ignored(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "docs",
        {
            "a.txt": "Red apples.",
            ".hidden.txt": "x",
            ".git/config": "x",
            "node_modules/pkg/readme.md": "x",
            "src/__pycache__/a.py": "x",
            "env/pyvenv.cfg": "x",
            "env/lib/site.py": "x",
            "cache/CACHEDIR.TAG": "x",
            "cache/a.txt": "x",
        },
    )
    with document_store(location=str(folder / "cases")) as store:
        store.add([note("what is red", "an apple")])
        report = ingest(store, folder)
        assert (report.files, report.failed, report.skipped) == (1, (), ())
        assert ingest(store, folder / "env" / "lib").files == 1


def test_passage_that_cannot_be_encoded_is_reported_and_stored_by_the_next_run(
    tmp_path: Path,
) -> None:
    folder = write(
        tmp_path / "docs",
        {"a.txt": f"{paragraph('alder')}\n\n{paragraph('broken')}", "b.txt": "Red apples."},
    )
    path = str(tmp_path / "cases")
    with document_store(BrokenEncoder(), path) as store:
        report = ingest(store, folder)
        assert [path for path, _ in report.failed] == ["a.txt"]
        assert "cannot be encoded" in report.failed[0][1]
        assert (report.added, report.files, store.count()) == (2, 1, 2)
    with document_store(location=path) as store:
        report = ingest(store, folder)
        assert (report.added, report.updated, report.unchanged, report.failed) == (1, 1, 1, ())


def test_readable_damaged_pdf_prints_no_warning(
    store: CaseStore, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = pdf(["some words"]).replace(b"startxref\n", b"startxref\n9")
    report = ingest(store, write(tmp_path / "docs", {"a.pdf": broken}))
    assert (report.files, report.failed) == (1, ())
    assert capfd.readouterr() == ("", "")


PACKAGES = ("llama_index", "pypdf", "bs4", "tree_sitter")
#: Forks one process for each missing package, before any package is imported.
INGEST_WITHOUT = """
import os, sys
from casewright.stores.documents.ingest import ingest
from tests.stores.document_files import document_store
folder, *packages = sys.argv[1:]
for package in packages:
    if os.fork() == 0:
        sys.modules[package] = None
        try:
            ingest(document_store(), folder)
        except ImportError as error:
            print(package, type(error).__name__, error, flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def import_errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the error that ingestion prints for each missing package."""
    docs = write(tmp_path_factory.mktemp("plain") / "docs", {"a.txt": "Red apples."})
    process = subprocess.run(
        [sys.executable, "-c", INGEST_WITHOUT, str(docs), *PACKAGES],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert process.stderr == ""
    return {name: line for name, _, line in (s.partition(" ") for s in process.stdout.splitlines())}


@pytest.mark.parametrize("package", PACKAGES)
def test_missing_package_error_gives_the_install_command(
    import_errors: dict[str, str], package: str
) -> None:
    assert import_errors[package].startswith("DependencyError ")
    assert package in import_errors[package]
    assert "pip install 'casewright[documents]'" in import_errors[package]
