from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from casewright.errors import StoreDamagedError
from casewright.stores import CaseStore
from tests.stores.helpers import note, note_schema
from tests.support.sparse import contents

GARBAGE = b"\x00\xffnot what it was\n" * 400


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "cases"
    with CaseStore(note_schema("letters"), place, engine="local") as letters:
        letters.add([note("a letter")])
    with CaseStore(note_schema(), place) as store:
        store.add([note(f"question {i}", i) for i in range(10)])
    return place


def storage(folder: Path) -> Path:
    return folder / "collection" / "notes" / "storage.sqlite"


def refused(folder: Path) -> None:
    """The folder is called damaged, by name; all its files stay, and it is not held."""
    before = contents(folder)
    for _ in range(2):
        with pytest.raises(StoreDamagedError, match=str(folder)):
            CaseStore(note_schema(), folder)
    assert contents(folder) == before


@pytest.mark.parametrize(
    "meta", [GARBAGE, b"", b"{}", b"[]", b"null", b'{"collections": {"notes": {"vectors": 3}}}']
)
def test_garbage_in_meta_json_is_damage_and_deletes_nothing(folder: Path, meta: bytes) -> None:
    (folder / "meta.json").write_bytes(meta)
    refused(folder)


def test_meta_json_cut_in_half_is_damage_and_deletes_nothing(folder: Path) -> None:
    meta = (folder / "meta.json").read_bytes()
    (folder / "meta.json").write_bytes(meta[: len(meta) // 2])
    refused(folder)


def test_missing_meta_json_beside_collections_is_damage(folder: Path) -> None:
    (folder / "meta.json").unlink()
    refused(folder)


def test_garbage_in_a_collections_storage_is_damage_and_deletes_nothing(folder: Path) -> None:
    storage(folder).write_bytes(GARBAGE)
    refused(folder)


def test_storage_cut_in_half_is_damage_and_deletes_nothing(folder: Path) -> None:
    whole = storage(folder).read_bytes()
    storage(folder).write_bytes(whole[: len(whole) // 2])
    refused(folder)


def test_garbage_in_a_stored_point_is_damage_and_deletes_nothing(folder: Path) -> None:
    with sqlite3.connect(storage(folder)) as db:
        db.execute("UPDATE points SET point = ? WHERE rowid = 4", (GARBAGE,))
    db.close()
    refused(folder)


def test_missing_storage_of_a_collection_is_damage(folder: Path) -> None:
    storage(folder).unlink()
    refused(folder)


def test_restored_folder_opens_again(folder: Path) -> None:
    meta = (folder / "meta.json").read_bytes()
    (folder / "meta.json").write_bytes(GARBAGE)
    refused(folder)
    (folder / "meta.json").write_bytes(meta)
    with CaseStore(note_schema(), folder) as store:
        assert store.count() == 10
