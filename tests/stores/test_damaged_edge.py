from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from casewright.errors import StoreDamagedError
from casewright.stores import CaseStore
from tests.stores.helpers import note, note_schema
from tests.support.sparse import contents, copied

SEGMENT = "shard/segments/*/"


@pytest.fixture(scope="module")
def undamaged_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two collections; every test damages a copy of it."""
    path = tmp_path_factory.mktemp("undamaged") / "cases"
    with CaseStore(note_schema("letters"), path) as letters:
        letters.add([note("a letter")])
    for turn in range(3):
        with CaseStore(note_schema(), path) as store:
            store.add([note(f"question {turn} {i}", "s" * 300) for i in range(10)])
    return path


@pytest.fixture
def folder(undamaged_folder: Path, tmp_path: Path) -> Path:
    return copied(undamaged_folder, tmp_path / "cases")


def find_file(folder: Path, pattern: str) -> Path:
    (path,) = (folder / "shards" / "notes").glob(pattern)
    return path


def read_store(folder: Path) -> None:
    with CaseStore(note_schema(), folder) as store:
        store.search("question", 50)
        store.all()


def check_damaged(folder: Path) -> None:
    """Check that the error names the folder, all files stay, and the other collection opens."""
    before = contents(folder)
    for _ in range(2):
        with pytest.raises(StoreDamagedError, match=str(folder)):
            read_store(folder)
    assert contents(folder) == before
    with CaseStore(note_schema("letters"), folder) as letters:
        assert letters.count() == 1


PARTS = [
    "shard/edge_config.json",
    "shard/wal/open-1",
    SEGMENT + "segment.json",
    SEGMENT + "version.info",
    SEGMENT + "mutable_id_tracker.mappings",
    SEGMENT + "mutable_id_tracker.versions",
    SEGMENT + "payload_storage/page_0.dat",
    SEGMENT + "payload_storage/tracker.dat",
    SEGMENT + "vector_storage/vectors/chunk_0.mmap",
    SEGMENT + "vector_storage/vectors/status.dat",
]


@pytest.mark.parametrize("part", PARTS)
def test_missing_or_cut_shard_file_raises_store_damaged_error_and_deletes_nothing(
    folder: Path, part: str
) -> None:
    damaged = find_file(folder, part)
    os.truncate(damaged, damaged.stat().st_size // 2)
    check_damaged(folder)
    damaged.unlink()
    check_damaged(folder)


@pytest.mark.parametrize(
    "part",
    [
        "layout.json",
        "closed.json",
        "shard/edge_config.json",
        "shard/wal/open-1",
        SEGMENT + "segment.json",
        SEGMENT + "version.info",
        SEGMENT + "mutable_id_tracker.mappings",
    ],
)
def test_garbage_in_a_shard_file_raises_store_damaged_error_and_deletes_nothing(
    folder: Path, part: str
) -> None:
    damaged = find_file(folder, part)
    with damaged.open("r+b") as stream:
        stream.write(
            random.Random(0).randbytes(damaged.stat().st_size if "wal" not in part else 99)
        )
    check_damaged(folder)


@pytest.mark.parametrize("part", PARTS[:5])
def test_garbage_in_a_shard_file_after_a_kill_raises_store_damaged_error(
    folder: Path, part: str
) -> None:
    find_file(folder, "closed.json").unlink()
    damaged = find_file(folder, part)
    original = damaged.read_bytes()
    with damaged.open("r+b") as stream:
        stream.write(b"\xff" * min(len(original), 99))
    for _ in range(2):
        with pytest.raises(StoreDamagedError, match=str(folder)):
            read_store(folder)
    damaged.write_bytes(original)
    with CaseStore(note_schema(), folder) as store:
        assert store.count() == len(store.all()) == 30


def test_garbage_in_stored_cases_raises_store_damaged_error(folder: Path) -> None:
    find_file(folder, "closed.json").unlink()
    with find_file(folder, SEGMENT + "payload_storage/page_0.dat").open("r+b") as stream:
        stream.write(random.Random(0).randbytes(20_000))
    with pytest.raises(StoreDamagedError, match=f"{folder} .*notes"):
        read_store(folder)


def test_panic_of_the_engine_raises_store_damaged_error(folder: Path) -> None:
    find_file(folder, "closed.json").unlink()
    os.truncate(find_file(folder, SEGMENT + "vector_storage/vectors/status.dat"), 0)
    for _ in range(2):
        with pytest.raises(StoreDamagedError, match=str(folder)):
            read_store(folder)


@pytest.mark.parametrize("part", ["layout.json", SEGMENT + "segment.json"])
def test_damaged_collection_can_be_dropped_and_built_again(folder: Path, part: str) -> None:
    find_file(folder, part).write_text("{")
    with CaseStore(note_schema("letters"), folder) as letters:
        letters.engine.drop("notes")
        with CaseStore(note_schema(), folder) as store:
            assert store.count() == 0
            store.add([note("anew")])
    with CaseStore(note_schema(), folder) as store:
        assert store.count() == 1


def test_store_folder_opens_after_its_damaged_file_is_restored(folder: Path) -> None:
    damaged = find_file(folder, SEGMENT + "mutable_id_tracker.mappings")
    original = damaged.read_bytes()
    damaged.write_bytes(original[:10])
    check_damaged(folder)
    damaged.write_bytes(original)
    with CaseStore(note_schema(), folder) as store:
        assert store.count() == len(store.all()) == 30


def test_folders_left_by_an_interrupted_create_or_drop_are_ignored_and_removed(
    folder: Path,
) -> None:
    shards = folder / "shards"
    for ending in ("new", "gone"):
        (shards / f"notes.{ending}" / "shard" / "wal").mkdir(parents=True)
    with CaseStore(note_schema(), folder) as store:
        assert store.count() == 30
        store.clear()
        store.add([note("anew")])
    assert sorted(path.name for path in shards.iterdir()) == ["letters", "notes"]
