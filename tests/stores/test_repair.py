"""A damaged store is built anew of what is sound in it, and what is lost is said."""

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
from tests.stores.test_damage_inside import MAPPINGS, SEGMENT, VECTOR, VECTORS, file, flip
from tests.support.sparse import copied

CASES = 60
#: Vectors that are damaged, more than cases are ever deleted here.
SOME = 12


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that was written to by two processes, one after the other; tests damage a copy."""
    place = tmp_path_factory.mktemp("sound") / "cases"
    for turn in range(2):
        with CaseStore(note_schema(), place) as store:
            store.add([note(f"question {turn} {n}", f"answer {n}") for n in range(CASES // 2 + 1)])
            store.delete([case.id for case in store.all() if case.solution == f"answer {turn}"])
            # The one that was deleted of the first turn is written again by the second.
            store.add([note("question 1 1", "answer 1")] if turn else [])
    return place


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return copied(sound, tmp_path / "cases")


def cases(folder: Path) -> dict[str, Case]:
    with CaseStore(note_schema(), folder) as store:
        return {case.id: case for case in store.all()}


def test_undamaged_store_is_checked_and_not_repaired(folder: Path) -> None:
    (looked,) = check_folder(folder)
    assert (looked.collection, looked.cases, looked.damage) == ("notes", CASES, "")
    assert repair_folder(folder) == []


def test_reader_without_engine_returns_the_same_cases_as_the_engine(folder: Path) -> None:
    with CaseStore(note_schema(), folder) as store:
        known = {p.id: p for p in store.engine.get("notes", list(cases(folder)), vectors=True)}
    read = list(stored_cases(folder / "shards/notes/shard", 65, with_id=True))
    assert None not in read
    assert {one[0]["id"] for one in read if one} == set(known)
    for payload, vector in filter(None, read):
        assert np.array_equal(vector, known[payload["id"]].vector)


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
@pytest.mark.parametrize("how", ["flipped", "cut"])
def test_repair_of_damage_outside_the_cases_loses_no_case(
    folder: Path, part: str, how: str
) -> None:
    before = cases(folder)
    damaged = file(folder, f"shards/notes/{part}")
    if how == "flipped":
        flip(damaged, damaged.stat().st_size - 1)
    else:
        os.truncate(damaged, damaged.stat().st_size // 2)
    assert check_folder(folder)[0].damage
    (made,) = repair_folder(folder)
    assert (made.cases, made.lost) in ((CASES, 0), (CASES, None))
    assert cases(folder) == before
    assert Path(made.beside).is_dir()
    assert [looked.damage for looked in check_folder(folder)] == [""]


def test_repair_counts_lost_cases_and_writes_their_readable_texts(folder: Path) -> None:
    before = cases(folder)
    with file(folder, VECTORS).open("r+b") as opened:
        opened.seek(10 * VECTOR)
        opened.write(bytes(3 * VECTOR))
    page = file(folder, f"{SEGMENT}payload_storage/page_0.dat")
    flip(page, page.read_bytes().index(b"question 0 20"))
    (made,) = repair_folder(folder)
    after = cases(folder)
    assert (made.cases, made.lost) == (len(after), len(before) - len(after))
    # Edge orders vectors as it likes: among the three may be one that was deleted, or the fourth's.
    assert 2 <= made.lost <= 4
    assert after.items() <= before.items()
    lines = Path(made.texts).read_text("utf-8").splitlines()
    again = [Case.from_json(one.pop("id"), one) for one in map(json.loads, lines)]
    assert len(again) == made.lost - 1
    with CaseStore(note_schema(), folder) as store:
        store.add(again)
        assert store.count() == CASES - 1


def test_repair_keeps_cases_in_the_log_of_a_killed_process(folder: Path, tmp_path: Path) -> None:
    with CaseStore(note_schema(), folder) as store:
        late = store.add([note(f"late {number}", number) for number in range(30)])
        store.delete(late[-5:])
        before = {case.id: case for case in store.all()}
        killed = copied(folder, tmp_path / "killed")
    # Edge orders vectors as it likes: of so many not all are those of deleted cases.
    with file(killed, VECTORS).open("r+b") as opened:
        opened.write(bytes(SOME * VECTOR))
    with pytest.raises(StoreDamagedError):
        cases(killed)
    (made,) = repair_folder(killed)
    after = cases(killed)
    assert made.lost == len(before) - len(after) <= SOME
    assert after.items() <= before.items()


def test_repair_of_a_halved_mappings_file_loses_no_case(folder: Path) -> None:
    before = cases(folder)
    (folder / "shards/notes/closed.json").unlink()
    mappings = file(folder, MAPPINGS)
    os.truncate(mappings, mappings.stat().st_size // 2)
    (made,) = repair_folder(folder)
    assert made.lost == 0
    assert cases(folder) == before


@pytest.mark.slow
def test_repair_of_a_damaged_large_number_in_mappings_loses_no_case(folder: Path) -> None:
    before = cases(folder)
    mappings = file(folder, MAPPINGS)
    # The highest byte of the place of the last case.
    flip(mappings, mappings.stat().st_size - 1)
    (made,) = repair_folder(folder)
    assert made.lost == 0
    assert cases(folder) == before


def test_repair_rebuilds_only_the_damaged_collection(folder: Path) -> None:
    with CaseStore(note_schema("letters"), folder) as letters:
        letters.add([note("a letter")])
    flip(file(folder, VECTORS), 0)
    assert [bool(looked.damage) for looked in check_folder(folder)] == [False, True]
    assert [made.collection for made in repair_folder(folder)] == ["notes"]


def test_repair_rewrites_a_damaged_engine_record(folder: Path) -> None:
    before = cases(folder)
    (folder / "engine.json").write_text("{")
    assert check_folder(folder)[0].damage
    assert repair_folder(folder) == []
    assert cases(folder) == before


def test_check_and_repair_refuse_a_folder_without_a_store(tmp_path: Path) -> None:
    for look in (check_folder, repair_folder):
        with pytest.raises(InputError, match=str(tmp_path)):
            look(tmp_path)
    assert not list(tmp_path.iterdir())


def test_repair_of_a_damaged_log_keeps_deleted_cases_deleted(folder: Path) -> None:
    with CaseStore(note_schema(), folder) as store:
        store.delete([case.id for case in store.all()][:2])
    before = cases(folder)
    log = file(folder, "shards/notes/shard/wal/open-1")
    flip(log, log.stat().st_size // 3)
    (made,) = repair_folder(folder)
    assert (made.cases, made.lost, made.back) == (CASES - 2, 0, 0)
    assert cases(folder) == before


def test_repair_counts_deleted_cases_that_come_back(folder: Path, tmp_path: Path) -> None:
    with CaseStore(note_schema(), folder) as store:
        store.delete([case.id for case in store.all()][:2])
        killed = copied(folder, tmp_path / "killed")
    # What was deleted last stands in the log alone.
    for log in killed.glob("shards/notes/shard/wal/open-*"):
        log.write_bytes(bytes(log.stat().st_size))
    with pytest.raises(StoreDamagedError):
        cases(killed)
    (made,) = repair_folder(killed)
    assert (made.lost, made.back) == (0, 2) == (0, len(cases(killed)) - (CASES - 2))
