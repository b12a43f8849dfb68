from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from casewright.errors import InputError, StoreDamagedError, StoreError
from casewright.stores import CaseStore
from tests.stores.helpers import ROOT, note, note_schema


def test_two_memory_stores_share_no_cases() -> None:
    with CaseStore(note_schema()) as first, CaseStore(note_schema()) as second:
        first.add([note("only here")])
        assert (first.count(), second.count()) == (1, 0)


def test_reopened_folder_has_the_written_cases_and_scores(folder: Path) -> None:
    cases = [
        note(f"question {i}", i, quality=i / 10, metadata={"even": i % 2 == 0}) for i in range(9)
    ]
    with CaseStore(note_schema(), folder) as store:
        store.add(cases)
        store.delete(store.all({"even": True})[0].id)
        stored, expected = store.all(), store.search("question 3", 9, lambda_b=0.4)
    with CaseStore(note_schema(), folder) as reopened:
        assert reopened.all() == stored
        hits = reopened.search("question 3", 9, lambda_b=0.4)
        assert [hit.case for hit in hits] == [hit.case for hit in expected]
        assert [hit.score for hit in hits] == pytest.approx([h.score for h in expected], abs=1e-6)


def test_reopened_store_keeps_the_quality_scale(folder: Path) -> None:
    with CaseStore(note_schema(), folder) as store:
        store.add([note("one", quality=0.2), note("two", quality=0.4)])
    with CaseStore(note_schema(), folder) as reopened:
        reopened.add([note("unmeasured"), note("high", quality=1.0)])
        scores = sorted(hit.score for hit in reopened.search("zzz", lambda_b=0.0))
    assert scores == pytest.approx([0.2, 0.3, 0.4, 1.0], abs=1e-6)


def test_store_creates_parent_folders_and_expands_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with CaseStore(note_schema(), "~/a/b/cases") as store:
        store.add([note("q")])
    assert (tmp_path / "a" / "b" / "cases" / "engine.json").is_file()


def test_stores_of_different_schemas_share_a_folder(folder: Path) -> None:
    schemas = note_schema("notes"), note_schema("letters")
    with CaseStore(schemas[0], folder) as notes, CaseStore(schemas[1], folder) as letters:
        notes.add([note("a note")])
        letters.add([note("a letter"), note("another letter")])
        assert (notes.count(), letters.count()) == (1, 2)
        notes.clear()
        assert (notes.count(), letters.count()) == (0, 2)
    with CaseStore(schemas[1], folder) as reopened:
        assert reopened.count() == 2


def test_store_stays_open_when_another_store_of_its_folder_closes(folder: Path) -> None:
    notes = CaseStore(note_schema("notes"), folder)
    with CaseStore(note_schema("letters"), str(folder) + "/../" + folder.name) as letters:
        letters.add([note("a letter")])
        notes.close()
        assert letters.count() == 1
    with pytest.raises(StoreError):
        letters.count()


def test_closing_a_store_twice_leaves_the_other_store_of_its_folder_open(folder: Path) -> None:
    with CaseStore(note_schema("letters"), folder) as letters:
        letters.add([note("a letter")])
        with CaseStore(note_schema("notes"), folder) as notes:
            notes.close()
        assert letters.count() == 1


def test_two_stores_of_one_schema_and_folder_see_each_others_cases(folder: Path) -> None:
    with CaseStore(note_schema(), folder) as first, CaseStore(note_schema(), folder) as second:
        first.add([note("from one", 1)])
        assert second.count() == 1
        second.add([note("from two", 2)])
        assert sorted(case.solution for case in first.all()) == [1, 2]


def test_store_works_after_another_store_of_its_folder_cleared_the_cases(folder: Path) -> None:
    with CaseStore(note_schema(), folder) as first, CaseStore(note_schema(), folder) as second:
        first.add([note("from one", 1)])
        second.add([note("from two", 2)])
        first.clear()
        assert (second.count(), second.all(), second.search("from")) == (0, [], [])
        second.add([note("from two", 2)])
        assert first.count() == 1


def test_search_on_a_closed_store_raises_store_error(location: str) -> None:
    store = CaseStore(note_schema(), location)
    store.add([note("q")])
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.search("q")


def test_file_in_place_of_a_folder_is_refused_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "cases"
    file.write_text("precious")
    with pytest.raises(InputError, match=str(file)):
        CaseStore(note_schema(), file)
    assert file.read_text() == "precious"


def test_folder_that_cannot_be_created_does_not_raise_store_damaged_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises((StoreError, InputError)) as exc_info:
        CaseStore(note_schema(), tmp_path / "file" / "cases")
    assert not isinstance(exc_info.value, StoreDamagedError)


@pytest.mark.parametrize("name", ["", "a/b", "..", "what?"])
def test_invalid_schema_name_raises_input_error(location: str, name: str) -> None:
    with pytest.raises(InputError), CaseStore(note_schema(name), location) as store:
        store.add([note("q")])


def test_process_that_does_not_close_its_store_exits_without_error(folder: Path) -> None:
    script = (
        "import sys\nfrom casewright.stores import CaseStore\n"
        "from tests.stores.helpers import note, note_schema\n"
        "store = CaseStore(note_schema(), sys.argv[1])\nstore.add([note('q')])\nprint('done')\n"
    )
    command = [sys.executable, "-c", script, str(folder)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stdout, process.stderr) == (0, "done\n", "")
    with CaseStore(note_schema(), folder) as store:
        assert store.count() == 1


@pytest.mark.parametrize("location", ["", "  ", "a\0b", "ftp://localhost"])
def test_invalid_store_location_raises_input_error(location: str) -> None:
    with pytest.raises(InputError):
        CaseStore(note_schema(), location)


def test_store_uses_the_quality_scale_of_a_collection_recreated_by_another_store(
    folder: Path,
) -> None:
    with CaseStore(note_schema(), folder) as first, CaseStore(note_schema(), folder) as second:
        first.add([note("old", quality=0.2), note("older", quality=0.9)])
        assert len(second.search("old")) == 2
        first.clear()
        first.add([note("new", quality=0.1), note("newer", quality=0.1)])
        second.add([note("newest", quality=0.7)])
        scores = [hit.score for hit in second.search("zzz", lambda_b=0.0)]
    assert scores == pytest.approx([0.7, 0.1, 0.1], abs=1e-6)


@pytest.mark.parametrize("host", ["localhost:6333", "qdrant.example.org:6333", "10.0.0.7:6333/"])
def test_host_and_port_without_scheme_are_refused_and_the_url_is_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"http://{host}"):
        CaseStore(note_schema(), host)
    assert not list(tmp_path.iterdir())
