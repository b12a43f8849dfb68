"""Ingestion on a first run and on later runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from casewright.errors import InputError
from casewright.stores import CaseStore
from casewright.stores.documents.cases import document_schema
from casewright.stores.documents.ingest import ingest
from tests.stores.document_files import (
    chunks_of,
    contents,
    document_store,
    paragraph,
    pdf,
    sources,
    write,
)
from tests.stores.helpers import note
from tests.support.encoders import HashingEncoder

NAMES = ("alder", "birch", "cedar", "dogwood", "elm")
LONG = "\n\n".join(paragraph(name) for name in NAMES)
CODE = '''"""A small module."""

import os


class Walker:
    """Walks."""

    def step(self, far):
        # One step.
        return far + 1


def run(walker):
    return walker.step(3)
'''
PAGE = (
    "<html><title>Filters</title><body><h1>Care</h1><p>Rinse the filter weekly.</p></body></html>"
)


@pytest.fixture
def encoder() -> HashingEncoder:
    return HashingEncoder()


@pytest.fixture
def store(encoder: HashingEncoder) -> Iterator[CaseStore]:
    with document_store(encoder) as case_store:
        yield case_store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(
        tmp_path / "docs",
        {
            "notes.txt": "The kettle whistles at noon.\n",
            "guide/setup.md": "# Setup\n\nHello.\n\n## Linux\n\nUnpack the archive first.\n",
            "guide/care.html": PAGE,
            "guide/report.pdf": pdf(["Revenue rose by a tenth.", "Costs fell in autumn."]),
            "src/walk.py": CODE,
            "settings.yaml": "colour: teal\n",
            "LICENSE": "Permission is granted to everybody.\n",
        },
    )


def take_encoded_texts(encoder: HashingEncoder) -> list[str]:
    texts = [text for call in encoder.calls for text in call]
    encoder.calls.clear()
    return texts


@pytest.mark.parametrize(
    ("question", "source", "where"),
    [
        ("the kettle whistles", "notes.txt", {"first_line": 1, "last_line": 1}),
        ("unpack the archive", "guide/setup.md", {"first_line": 5, "heading": "Setup › Linux"}),
        ("rinse the filter weekly", "guide/care.html", {"title": "Filters", "heading": "Care"}),
        ("revenue rose by a tenth", "guide/report.pdf", {"page": 1}),
        ("costs fell in autumn", "guide/report.pdf", {"page": 2}),
        ("step far one step return", "src/walk.py", {"symbol": "Walker.step", "first_line": 6}),
        ("colour teal", "settings.yaml", {"first_line": 1}),
        ("permission granted everybody", "LICENSE", {"first_line": 1}),
    ],
)
def test_search_finds_every_document_type_with_its_location(
    store: CaseStore, folder: Path, question: str, source: str, where: dict[str, object]
) -> None:
    report = ingest(store, folder)
    assert (report.files, report.failed, report.skipped) == (7, (), ())
    case = store.search(question, 1)[0].case
    assert case.metadata["source"] == source
    assert case.solution == case.problem["text"]
    assert {name: case.metadata.get(name) for name in where} == where


def test_chunk_has_root_source_position_and_number_of_chunks(
    store: CaseStore, tmp_path: Path
) -> None:
    folder = write(tmp_path / "docs", {"long.txt": LONG})
    report = ingest(store, folder)
    assert report.root == folder.resolve().as_posix()
    chunks = chunks_of(store, "long.txt")
    assert [chunk["position"] for chunk in chunks] == [1, 2, 3, 4, 5]
    assert {(chunk["root"], chunk["chunks"]) for chunk in chunks} == {(report.root, 5)}
    middle = next(case for case in store.all() if case.metadata["position"] == 3)
    neighbours = store.all(
        {"root": report.root, "source": middle.metadata["source"], "position": [2, 4]}
    )
    assert sorted(case.solution.split()[0] for case in neighbours) == ["birch", "dogwood"]


def test_second_run_over_the_same_files_encodes_and_writes_nothing(
    store: CaseStore, encoder: HashingEncoder, folder: Path
) -> None:
    first = ingest(store, folder)
    assert first.added == store.count() == len(take_encoded_texts(encoder)) / 2
    before = [(case.id, case.created) for case in store.all()]
    second = ingest(store, folder)
    assert (second.added, second.updated, second.removed) == (0, 0, 0)
    assert (second.unchanged, second.files) == (first.added, 7)
    assert take_encoded_texts(encoder) == []
    assert [(case.id, case.created) for case in store.all()] == before


def test_inserted_paragraph_is_the_only_new_text_encoded(
    store: CaseStore, encoder: HashingEncoder, tmp_path: Path
) -> None:
    folder = write(tmp_path / "docs", {"long.txt": LONG})
    ingest(store, folder)
    before = {chunk["id"]: chunk for chunk in chunks_of(store, "long.txt")}
    take_encoded_texts(encoder)
    write(folder, {"long.txt": f"{paragraph('zebra')}\n\n{LONG}"})
    report = ingest(store, folder)
    assert (report.added, report.updated, report.removed) == (1, 5, 0)
    assert {text.split()[0] for text in take_encoded_texts(encoder)} == {"zebra", "long.txt"}
    for chunk in chunks_of(store, "long.txt")[1:]:
        previous = before[chunk["id"]]
        assert chunk["text"] == previous["text"]
        assert chunk["position"] == previous["position"] + 1
        assert chunk["first_line"] == previous["first_line"] + 2
        assert (chunk["chunks"], chunk["digest"] != previous["digest"]) == (6, True)


def test_second_run_after_changes_gives_the_same_store_as_a_first_run(
    store: CaseStore, folder: Path
) -> None:
    ingest(store, folder)
    write(folder, {"notes.txt": LONG, "new.md": "# New\n\nWords.\n", "src/walk.py": CODE[:-40]})
    (folder / "LICENSE").unlink()
    (folder / "guide" / "setup.md").rename(folder / "guide" / "install.md")
    report = ingest(store, folder)
    assert "guide/setup.md" not in sources(store)
    assert report.files == len(sources(store)) == 7
    with document_store() as reference:
        ingest(reference, folder)
        assert contents(reference) == contents(store)


def test_run_removes_chunks_of_deleted_passages(store: CaseStore, tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", {"long.txt": LONG})
    ingest(store, folder)
    write(folder, {"long.txt": LONG.split("\n\n")[0]})
    report = ingest(store, folder)
    assert (report.added, report.updated, report.removed) == (0, 1, 4)
    assert store.count() == 1


def test_repeated_passage_in_a_file_is_two_cases(store: CaseStore, tmp_path: Path) -> None:
    twice = f"{paragraph('alder')}\n\n{paragraph('alder')}\n"
    folder = write(tmp_path / "docs", {"twice.txt": twice})
    assert ingest(store, folder).added == store.count() == 2
    write(folder, {"twice.txt": paragraph("alder")})
    report = ingest(store, folder)
    assert (report.added, report.updated, report.removed, store.count()) == (0, 1, 1, 1)


@pytest.mark.parametrize(
    ("include", "exclude"),
    [(["*.md", "src"], []), ([], ["guide", "*.yaml"]), (["guide"], ["*.pdf"]), ([], ["*"])],
)
def test_run_with_patterns_keeps_stored_files_outside_the_patterns(
    store: CaseStore, folder: Path, include: list[str], exclude: list[str]
) -> None:
    ingest(store, folder)
    before = contents(store)
    report = ingest(store, folder, include=include, exclude=exclude)
    assert (report.added, report.updated, report.removed) == (0, 0, 0)
    assert contents(store) == before


def test_run_with_patterns_updates_and_removes_only_matching_files(
    store: CaseStore, folder: Path
) -> None:
    ingest(store, folder)
    for name in ("notes.txt", "guide/setup.md", "guide/care.html", "LICENSE"):
        (folder / name).unlink()
    write(folder, {"settings.yaml": "colour: red\n", "guide/new.md": "# New\n\nWords.\n"})
    report = ingest(store, folder, include=["guide", "LICENSE"], exclude=["*.html"])
    assert sources(store) == [
        "guide/care.html",
        "guide/new.md",
        "guide/report.pdf",
        "notes.txt",
        "settings.yaml",
        "src/walk.py",
    ]
    assert (report.files, report.added) == (2, 1)
    assert chunks_of(store, "settings.yaml")[0]["text"] == "colour: teal"


def test_run_with_kinds_ingests_and_removes_only_files_of_these_kinds(
    store: CaseStore, tmp_path: Path
) -> None:
    folder = write(
        tmp_path / "tree",
        {
            "a.py": "x = 1\n",
            "B.PY": "y = 2\n",
            "c.md": "# C\n\nSea.\n",
            "d.xyz": "z",
            "e.bin": b"\0",
        },
    )
    (folder / "f.md").symlink_to("/")
    report = ingest(store, folder, kinds=["code"])
    assert (report.files, report.failed, report.skipped) == (2, (), ())
    assert sources(store) == ["B.PY", "a.py"]
    ingest(store, folder, kinds=["markdown"])
    for name in ("a.py", "c.md"):
        (folder / name).unlink()
    assert ingest(store, folder, kinds=["code"]).removed == 1
    assert sources(store) == ["B.PY", "c.md"]


@pytest.mark.parametrize("include", [["zzz*"], ["*.md", "zzz*"], ["guide/*.py"]])
def test_include_pattern_that_matches_no_file_is_refused_and_nothing_is_written(
    store: CaseStore, folder: Path, include: list[str]
) -> None:
    ingest(store, folder)
    write(folder, {"guide/setup.md": "# Setup\n\nAnew.\n"})
    before = contents(store)
    with pytest.raises(InputError, match="matches none of the files"):
        ingest(store, folder, include=include)
    assert contents(store) == before


def test_include_pattern_of_deleted_files_removes_their_cases(
    store: CaseStore, folder: Path
) -> None:
    ingest(store, folder)
    (folder / "settings.yaml").unlink()
    assert ingest(store, folder, include=["*.yaml"]).removed == 1
    assert "settings.yaml" not in sources(store)


def test_patterns_apply_to_a_single_file(store: CaseStore, folder: Path) -> None:
    ingest(store, folder)
    write(folder, {"notes.txt": "Another kettle.\n"})
    report = ingest(store, folder / "notes.txt", exclude=["*.txt"])
    assert (report.files, report.added, report.removed) == (0, 0, 0)
    with pytest.raises(InputError, match="matches none of the files"):
        ingest(store, folder / "notes.txt", include=["*.md"])
    assert chunks_of(store, "notes.txt")[0]["text"] == "The kettle whistles at noon."


def test_run_on_a_folder_does_not_change_cases_of_another_folder(
    store: CaseStore, tmp_path: Path
) -> None:
    first = write(tmp_path / "one", {"a.txt": "Red apples.", "b.txt": "Green pears."})
    second = write(tmp_path / "two", {"a.txt": "Red apples.", "c.txt": "Blue plums."})
    ingest(store, first)
    ingest(store, second)
    assert store.count() == 4
    (first / "a.txt").unlink()
    report = ingest(store, first)
    assert (report.removed, report.unchanged) == (1, 1)
    assert {(case.metadata["root"], case.metadata["source"]) for case in store.all()} == {
        (str(first), "b.txt"),
        (str(second), "a.txt"),
        (str(second), "c.txt"),
    }


def test_moved_folder_with_the_same_root_name_is_unchanged(
    store: CaseStore, tmp_path: Path
) -> None:
    folder = write(tmp_path / "here", {"a.txt": "Red apples.", "b.txt": "Green pears."})
    first = ingest(store, folder, root="fruit")
    moved = folder.rename(tmp_path / "there")
    second = ingest(store, moved, root="fruit")
    assert (second.root, second.unchanged, second.added) == ("fruit", first.added, 0)


def test_run_on_one_file_changes_only_cases_of_this_file(store: CaseStore, folder: Path) -> None:
    ingest(store, folder)
    before = store.count()
    write(folder, {"notes.txt": "Another kettle.\n", "other.txt": "Not asked for.\n"})
    (folder / "LICENSE").unlink()
    report = ingest(store, folder / "notes.txt")
    assert (report.added, report.removed, report.files) == (1, 1, 1)
    assert store.count() == before
    assert "LICENSE" in sources(store)
    assert chunks_of(store, "notes.txt")[0]["text"] == "Another kettle."


def test_ingest_keeps_cases_that_are_not_documents(tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", {"a.txt": "Red apples."})
    with document_store() as store:
        ids = store.add([note("what is red", "an apple")])
        ingest(store, folder)
        (folder / "a.txt").unlink()
        assert ingest(store, folder).removed == 1
        assert [case.id for case in store.all()] == ids


def test_ingest_gives_the_same_cases_on_every_engine(location: str, folder: Path) -> None:
    with document_store(location=location) as store, document_store() as reference:
        ingest(store, folder)
        ingest(reference, folder)
        assert contents(store) == contents(reference)


def test_ingest_keeps_cases_of_collections_and_tenants_separate(
    folder: Path, tmp_path: Path
) -> None:
    encoder, path = HashingEncoder(), tmp_path / "cases"
    with (
        CaseStore(document_schema(encoder), path) as plain,
        CaseStore(document_schema(encoder, "manuals"), path) as manuals,
        plain.for_tenant("acme") as acme,
        plain.for_tenant("zeta") as zeta,
    ):
        ingest(acme, folder)
        ingest(zeta, folder)
        ingest(manuals, folder)
        count = acme.count()
        assert (zeta.count(), manuals.count(), plain.count()) == (count, count, 2 * count)
        write(folder, {"LICENSE": ""})
        ingest(acme, folder)
        assert (acme.count(), zeta.count()) == (count - 1, count)


def test_dry_run_returns_the_report_of_a_run_and_changes_nothing(
    store: CaseStore, encoder: HashingEncoder, folder: Path
) -> None:
    first = ingest(store, folder, dry_run=True)
    assert (store.count(), take_encoded_texts(encoder)) == (0, [])
    assert ingest(store, folder) == first
    assert store.count() == first.added
    (folder / "LICENSE").unlink()
    write(folder, {"notes.txt": "Another kettle.\n"})
    before = contents(store)
    take_encoded_texts(encoder)
    dry_report = ingest(store, folder, dry_run=True)
    assert (contents(store), take_encoded_texts(encoder)) == (before, [])
    report = ingest(store, folder)
    assert report == dry_report
    assert (report.added, report.removed) == (1, 2)


def test_ingest_writes_progress_to_stderr(
    store: CaseStore, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ingest(store, folder, progress=True)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "Ingesting" in captured.err
    assert "1294/1294" in captured.err


@pytest.mark.parametrize("pattern", ["", "/"])
def test_empty_pattern_is_refused(store: CaseStore, folder: Path, pattern: str) -> None:
    with pytest.raises(InputError, match="pattern"):
        ingest(store, folder, exclude=[pattern])


@pytest.mark.parametrize("path", ["nowhere", "a\0b", ""])
def test_missing_path_is_refused(store: CaseStore, tmp_path: Path, path: str) -> None:
    with pytest.raises(InputError, match="cannot be ingested"):
        ingest(store, f"{tmp_path}/none/{path}")
