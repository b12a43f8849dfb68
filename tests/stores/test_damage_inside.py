"""Damage inside a store's files is detected before it makes an answer wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from casewright.errors import StoreDamagedError
from casewright.stores import CaseStore, Change
from tests.stores.helpers import note, note_schema
from tests.support.sparse import copied

SEGMENT = "shards/notes/shard/segments/*/"
VECTORS, MAPPINGS = f"{SEGMENT}vector_storage/vectors/chunk_0.mmap", f"{SEGMENT}*.mappings"
#: The bytes of a vector: two facets of 32 numbers each, and the quality.
VECTOR = 65 * 4
CASES = 600


def find_file(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def flip_bit(file: Path, offset: int, bit: int = 7) -> None:
    with file.open("r+b") as stream:
        stream.seek(offset)
        byte = stream.read(1)[0]
        stream.seek(offset)
        stream.write(bytes([byte ^ 1 << bit]))


def read_store(folder: Path) -> int:
    with CaseStore(note_schema(), folder) as store:
        store.search("question 300", 5)
        return len(store.all())


@pytest.fixture(scope="module")
def written_folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a closed folder and one of a killed process; each test damages a copy of one."""
    path = tmp_path_factory.mktemp("written")
    with CaseStore(note_schema(), path / "open") as store:
        store.add([note(f"question {number}", number) for number in range(CASES)])
    with CaseStore(note_schema(), path / "open") as store:
        store.delete(store.add([note("one more")]))
        killed = copied(path / "open", path / "killed")
    return path / "open", killed


@pytest.fixture
def closed(written_folders: tuple[Path, Path], tmp_path: Path) -> Path:
    return copied(written_folders[0], tmp_path / "closed")


@pytest.fixture
def killed(written_folders: tuple[Path, Path], tmp_path: Path) -> Path:
    return copied(written_folders[1], tmp_path / "killed")


def test_zeroed_vector_in_a_closed_store_raises_store_damaged_error(closed: Path) -> None:
    with find_file(closed, VECTORS).open("r+b") as stream:
        stream.seek(300 * VECTOR)
        assert stream.read(VECTOR).strip(b"\0")
        stream.seek(300 * VECTOR)
        stream.write(bytes(VECTOR))
    with pytest.raises(StoreDamagedError, match="chunk_0"):
        read_store(closed)


@pytest.mark.parametrize("name", ["layout.json", "count.bin"])
def test_flipped_bit_in_layout_or_count_file_raises_store_damaged_error(
    closed: Path, name: str
) -> None:
    damaged = find_file(closed, f"shards/notes/{name}")
    flip_bit(damaged, damaged.stat().st_size // 2, 0)
    with pytest.raises(StoreDamagedError, match=name):
        read_store(closed)


def test_missing_count_file_raises_store_damaged_error(closed: Path) -> None:
    find_file(closed, "shards/notes/count.bin").unlink()
    with pytest.raises(StoreDamagedError, match=r"count\.bin"):
        read_store(closed)


def test_copied_store_without_sparse_files_is_readable(closed: Path, tmp_path: Path) -> None:
    for file in closed.rglob("*.mmap"):
        file.write_bytes(file.read_bytes())
    assert read_store(closed) == CASES


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[tuple[CaseStore, Path]]:
    with CaseStore(note_schema(), tmp_path / "cases") as store:
        store.add([note(f"question {number}", number) for number in range(20)])
        yield store, tmp_path / "cases"


@pytest.mark.parametrize("bit", range(8))
def test_flipped_bit_in_a_vector_of_an_open_store_raises_store_damaged_error(
    open_store: tuple[CaseStore, Path], bit: int
) -> None:
    store, folder = open_store
    vectors = find_file(folder, VECTORS).read_bytes()
    offset = next(n for n in range(3, 20 * VECTOR, 4) if vectors[n] == 0x3F)
    flip_bit(find_file(folder, VECTORS), offset, bit)
    with pytest.raises(StoreDamagedError, match="cannot be read"):
        store.search("question 5", 20)
    with pytest.raises(StoreDamagedError):
        store.update({case.id: Change(quality=1.0) for case in store.all()})


def test_search_refuses_a_score_that_no_case_can_have() -> None:
    with CaseStore(note_schema()) as store:
        (id_,) = store.add([note("question")])
        for number in (3e36, 1.5):
            vector = np.full((1, 65), number, np.float32)
            store.engine.upsert("notes", [id_], vector, [note("question").to_json()])
            with pytest.raises(StoreDamagedError, match=id_):
                store.search("question")


def test_search_refuses_a_stored_quality_that_no_case_can_have() -> None:
    with CaseStore(note_schema()) as store:
        (id_,) = store.add([note("question", quality=0.5)])
        (point,) = store.engine.get("notes", [id_], vectors=True)
        assert point.vector is not None
        vector = np.append(point.vector[:-1], np.float32(40)).reshape(1, -1)
        store.engine.upsert("notes", [id_], vector, [point.payload])
        with pytest.raises(StoreDamagedError, match=id_):
            store.search("question", lambda_b=0.5)


def test_undamaged_store_of_a_killed_process_opens(killed: Path) -> None:
    assert read_store(killed) == CASES


def test_flipped_last_byte_of_mappings_after_a_kill_raises_store_damaged_error(
    killed: Path,
) -> None:
    mappings = find_file(killed, MAPPINGS)
    flip_bit(mappings, mappings.stat().st_size - 1)
    for _ in range(2):
        with pytest.raises(StoreDamagedError, match=str(killed)):
            read_store(killed)


def test_halved_mappings_file_after_a_kill_raises_store_damaged_error(killed: Path) -> None:
    mappings = find_file(killed, MAPPINGS)
    os.truncate(mappings, mappings.stat().st_size // 2)
    for _ in range(2):
        with pytest.raises(StoreDamagedError, match=f"of {CASES}"):
            read_store(killed)


def test_zeroed_vector_after_a_kill_raises_store_damaged_error(killed: Path) -> None:
    with find_file(killed, VECTORS).open("r+b") as stream:
        stream.seek(300 * VECTOR)
        stream.write(bytes(VECTOR))
    with pytest.raises(StoreDamagedError, match="differs from what was written"):
        read_store(killed)


def test_failed_opening_of_a_damaged_store_leaves_its_files_usable(killed: Path) -> None:
    mappings = find_file(killed, MAPPINGS)
    original = mappings.read_bytes()
    mappings.write_bytes(original[: len(original) // 2])
    with pytest.raises(StoreDamagedError):
        read_store(killed)
    mappings.write_bytes(original)
    assert read_store(killed) == CASES
    assert not list(killed.glob("shards/*looked*"))
