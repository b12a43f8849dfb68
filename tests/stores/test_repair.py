"""Repair rebuilds a damaged store from its undamaged cases, and reports the lost ones."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from casewright.errors import InputError, StoreDamagedError
from casewright.stores import Case, CaseStore
from casewright.stores.engines.edge_files import stored_cases
from casewright.stores.engines.upkeep import check_folder, repair_folder
from tests.stores.helpers import note, note_schema
from tests.stores.test_damage_inside import MAPPINGS, SEGMENT, VECTOR, VECTORS, find_file, flip_bit
from tests.support.sparse import copied

CASES = 60
#: Number of vectors that a test damages; it is larger than the number of deleted cases.
DAMAGED_VECTORS = 12


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that was opened and written twice; tests damage a copy."""
    folder = tmp_path_factory.mktemp("undamaged") / "cases"
    for turn in range(2):
        with CaseStore(note_schema(), folder) as store:
            store.add([note(f"question {turn} {n}", f"answer {n}") for n in range(CASES // 2 + 1)])
            store.delete([case.id for case in store.all() if case.solution == f"answer {turn}"])
            # The second turn adds a case again that it has deleted.
            store.add([note("question 1 1", "answer 1")] if turn else [])
    return folder


@pytest.fixture
def folder(undamaged: Path, tmp_path: Path) -> Path:
    return copied(undamaged, tmp_path / "cases")


def cases_by_id(folder: Path) -> dict[str, Case]:
    with CaseStore(note_schema(), folder) as store:
        return {case.id: case for case in store.all()}


def test_undamaged_store_passes_the_check_and_is_not_repaired(folder: Path) -> None:
    (result,) = check_folder(folder)
    assert (result.collection, result.cases, result.damage) == ("notes", CASES, "")
    assert repair_folder(folder) == []


def test_reader_without_engine_returns_the_same_cases_as_the_engine(folder: Path) -> None:
    with CaseStore(note_schema(), folder) as store:
        ids = list(cases_by_id(folder))
        points = {point.id: point for point in store.engine.get("notes", ids, vectors=True)}
    records = list(stored_cases(folder / "shards/notes/shard", 65, with_id=True))
    assert {payload["id"] for payload, _ in records} == set(points)
    for payload, vector in records:
        assert np.array_equal(vector, points[payload["id"]].vector)


@pytest.mark.parametrize(
    "part",
    [
        "layout.json",
        "closed.json",
        "count.bin",
        "shard/edge_config.json",
        "shard/segments/*/segment.json",
        "shard/segments/*/version.info",
        "shard/segments/*/mutable_id_tracker.mappings",
        "shard/segments/*/mutable_id_tracker.versions",
        "shard/segments/*/payload_storage/config.json",
        "shard/segments/*/vector_storage/vectors/status.dat",
        "shard/wal/first-index",
    ],
)
@pytest.mark.parametrize("damage", ["flipped", "cut"])
def test_repair_of_damage_outside_the_cases_loses_no_case(
    folder: Path, part: str, damage: str
) -> None:
    before = cases_by_id(folder)
    damaged = find_file(folder, f"shards/notes/{part}")
    if damage == "flipped":
        flip_bit(damaged, damaged.stat().st_size - 1)
    else:
        os.truncate(damaged, damaged.stat().st_size // 2)
    assert check_folder(folder)[0].damage
    (result,) = repair_folder(folder)
    assert (result.cases, result.lost) in ((CASES, 0), (CASES, None))
    assert cases_by_id(folder) == before
    assert Path(result.beside).is_dir()
    assert [result.damage for result in check_folder(folder)] == [""]


def test_repair_counts_lost_cases_and_writes_their_readable_texts(folder: Path) -> None:
    before = cases_by_id(folder)
    with find_file(folder, VECTORS).open("r+b") as opened:
        opened.seek(10 * VECTOR)
        opened.write(bytes(3 * VECTOR))
    page = find_file(folder, f"{SEGMENT}payload_storage/page_0.dat")
    flip_bit(page, page.read_bytes().index(b"question 0 20"))
    (result,) = repair_folder(folder)
    after = cases_by_id(folder)
    assert (result.cases, result.lost) == (len(after), len(before) - len(after))
    # The order of vectors varies: the three may include a deleted case's, or the damaged text's.
    assert 2 <= result.lost <= 4
    assert after.items() <= before.items()
    lines = Path(result.texts).read_text("utf-8").splitlines()
    recovered = [Case.from_json(record.pop("id"), record) for record in map(json.loads, lines)]
    assert len(recovered) == result.lost - 1
    with CaseStore(note_schema(), folder) as store:
        store.add(recovered)
        assert store.count() == CASES - 1


def test_repair_keeps_cases_in_the_log_of_a_killed_process(folder: Path, tmp_path: Path) -> None:
    with CaseStore(note_schema(), folder) as store:
        late_ids = store.add([note(f"late {number}", number) for number in range(30)])
        store.delete(late_ids[-5:])
        before = {case.id: case for case in store.all()}
        killed = copied(folder, tmp_path / "killed")
    # The order of vectors varies, but more vectors are damaged than cases are deleted.
    with find_file(killed, VECTORS).open("r+b") as opened:
        opened.write(bytes(DAMAGED_VECTORS * VECTOR))
    with pytest.raises(StoreDamagedError):
        cases_by_id(killed)
    (result,) = repair_folder(killed)
    after = cases_by_id(killed)
    assert result.lost == len(before) - len(after) <= DAMAGED_VECTORS
    assert after.items() <= before.items()


def test_repair_of_a_halved_mappings_file_loses_no_case(folder: Path) -> None:
    before = cases_by_id(folder)
    (folder / "shards/notes/closed.json").unlink()
    mappings = find_file(folder, MAPPINGS)
    os.truncate(mappings, mappings.stat().st_size // 2)
    (result,) = repair_folder(folder)
    assert result.lost == 0
    assert cases_by_id(folder) == before


@pytest.mark.slow
def test_repair_of_a_damaged_large_number_in_mappings_loses_no_case(folder: Path) -> None:
    before = cases_by_id(folder)
    mappings = find_file(folder, MAPPINGS)
    # Flip the highest byte of the last case's position.
    flip_bit(mappings, mappings.stat().st_size - 1)
    (result,) = repair_folder(folder)
    assert result.lost == 0
    assert cases_by_id(folder) == before


def test_repair_rebuilds_only_the_damaged_collection(folder: Path) -> None:
    with CaseStore(note_schema("letters"), folder) as letters:
        letters.add([note("a letter")])
    flip_bit(find_file(folder, VECTORS), 0)
    assert [bool(result.damage) for result in check_folder(folder)] == [False, True]
    assert [result.collection for result in repair_folder(folder)] == ["notes"]


def test_repair_rewrites_a_damaged_engine_record(folder: Path) -> None:
    before = cases_by_id(folder)
    (folder / "engine.json").write_text("{")
    assert check_folder(folder)[0].damage
    assert repair_folder(folder) == []
    assert cases_by_id(folder) == before


def test_check_and_repair_refuse_a_folder_without_a_store(tmp_path: Path) -> None:
    for operation in (check_folder, repair_folder):
        with pytest.raises(InputError, match=str(tmp_path)):
            operation(tmp_path)
    assert not list(tmp_path.iterdir())


def test_repair_of_a_damaged_log_keeps_deleted_cases_deleted(folder: Path) -> None:
    with CaseStore(note_schema(), folder) as store:
        store.delete([case.id for case in store.all()][:2])
    before = cases_by_id(folder)
    log = find_file(folder, "shards/notes/shard/wal/open-1")
    flip_bit(log, log.stat().st_size // 3)
    (result,) = repair_folder(folder)
    assert (result.cases, result.lost, result.back) == (CASES - 2, 0, 0)
    assert cases_by_id(folder) == before


def test_repair_counts_deleted_cases_that_come_back(folder: Path, tmp_path: Path) -> None:
    with CaseStore(note_schema(), folder) as store:
        store.delete([case.id for case in store.all()][:2])
        killed = copied(folder, tmp_path / "killed")
    # Only the log has the last deletions.
    for log in killed.glob("shards/notes/shard/wal/open-*"):
        log.write_bytes(bytes(log.stat().st_size))
    with pytest.raises(StoreDamagedError):
        cases_by_id(killed)
    (result,) = repair_folder(killed)
    assert (result.lost, result.back, len(cases_by_id(killed))) == (0, 2, CASES)
