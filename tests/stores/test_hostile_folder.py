"""A folder of local mode is data: whatever its pickles name, none of it is called."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from casewright.errors import StoreError
from casewright.stores import CaseStore
from tests.stores.helpers import note, note_schema
from tests.support.pickles import plant


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "cases"
    with CaseStore(note_schema(), place, engine="local") as store:
        store.add([note(f"question {number}", number) for number in range(3)])
    plant(place / "collection" / "notes" / "storage.sqlite", tmp_path / "ran")
    return place


def test_what_a_stored_pickle_names_is_not_called(folder: Path) -> None:
    with pytest.raises(StoreError, match="damaged"), CaseStore(note_schema(), folder) as store:
        store.count()
    assert not folder.with_name("ran").exists()


def test_nor_is_what_lies_where_a_new_collection_is_made(folder: Path) -> None:
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, "collections": {}}))
    with pytest.raises(StoreError), CaseStore(note_schema(), folder) as store:
        store.add([note("a question")])
    assert not folder.with_name("ran").exists()


def test_points_are_read_as_they_were_written(tmp_path: Path) -> None:
    place = tmp_path / "cases"
    cases = [note(f"question {number}", number) for number in range(3)]
    with CaseStore(note_schema(), place, engine="local") as store:
        store.add(cases)
        before = sorted(case.id for case in store.all())
    with CaseStore(note_schema(), shutil.copytree(place, tmp_path / "copy")) as store:
        assert sorted(case.id for case in store.all()) == before
        assert store.search("question 1", 1)[0].case.problem == cases[1].problem
