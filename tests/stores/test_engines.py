from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import pytest
from qdrant_client import QdrantClient, models

from casewright.errors import DependencyError, InputError, StoreDamagedError
from casewright.stores import CaseStore
from casewright.stores.engines.edge_shard import folder_name
from casewright.stores.engines.folder import LOCK_FILE
from casewright.stores.engines.upkeep import check_folder, repair_folder
from tests.stores.helpers import hold_folder, note, note_schema, send_order
from tests.support.pickles import plant
from tests.support.sparse import contents


def recorded_engine(folder: Path) -> str:
    return str(json.loads((folder / "engine.json").read_text())["engine"])


def test_new_folder_records_edge_as_its_engine(tmp_path: Path) -> None:
    with CaseStore(note_schema(), tmp_path / "cases") as store:
        store.add([note("q")])
    assert recorded_engine(tmp_path / "cases") == "edge"
    assert not (tmp_path / "cases" / "meta.json").exists()


def test_folder_without_an_engine_record_is_recognised_by_its_files(folder: Path) -> None:
    with CaseStore(note_schema(), folder) as store:
        store.add([note("q")])
    (folder / "engine.json").unlink()
    with CaseStore(note_schema(), folder) as store:
        assert store.count() == 1


@pytest.mark.parametrize("recorded", [True, False])
def test_folder_of_local_mode_is_refused_without_loading_a_pickle_or_changing_files(
    tmp_path: Path, recorded: bool
) -> None:
    path = tmp_path / "cases"
    client = QdrantClient(path=str(path))
    vectors = models.VectorParams(size=2, distance=models.Distance.DOT)
    client.create_collection("notes", vectors_config=vectors)
    client.upsert("notes", [models.PointStruct(id=1, vector=[0.0, 1.0])])
    client.close()
    plant(path / "collection" / "notes" / "storage.sqlite", tmp_path / "ran")
    if recorded:
        (path / "engine.json").write_text('{"engine": "local"}')
    (path / LOCK_FILE).touch()
    before = contents(path)
    for open_store in (partial(CaseStore, note_schema()), check_folder, repair_folder):
        with pytest.raises(InputError, match=f"{path} .* local mode, .* Build the store again"):
            open_store(path)
    assert contents(path) == before
    assert not (tmp_path / "ran").exists()


def test_missing_edge_package_raises_dependency_error_with_install_command(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_edge", None)
    for _ in range(2):
        with pytest.raises(DependencyError, match="pip install 'qdrant-edge-py"):
            CaseStore(note_schema(), folder)


@pytest.mark.parametrize("record", ["", "{", "[]", "{}", '{"engine": "sqlite"}', '{"engine": 3}'])
def test_engine_record_without_a_known_engine_raises_store_damaged_error(
    tmp_path: Path, record: str
) -> None:
    (tmp_path / "engine.json").write_text(record)
    with pytest.raises(StoreDamagedError, match=str(tmp_path)):
        CaseStore(note_schema(), tmp_path)
    assert (tmp_path / "engine.json").read_text() == record


def test_refused_openings_do_not_damage_the_store_of_the_holding_process(folder: Path) -> None:
    with hold_folder(folder, cases=30) as process:
        for _ in range(3):
            with pytest.raises(Exception, match="Another process holds"):
                CaseStore(note_schema(), folder)
        send_order(process, "add and close")
        assert process.stdout is not None
        assert process.stdout.readline() == "closed\n"
    with CaseStore(note_schema(), folder) as store:
        assert {case.solution for case in store.all() if case.solution} == {"last"}
        assert store.count() == 31
        assert len(store.search("question", 50)) == 31


@pytest.mark.parametrize("name", ["Notes", "notes", "_-", "-", "NUL", "a" * 200])
def test_schemas_with_similar_names_in_one_folder_have_separate_cases(
    folder: Path, name: str
) -> None:
    names = [name, name + "-new", "nOtes"]
    for schema_name in names:
        with CaseStore(note_schema(schema_name), folder) as store:
            store.add([note(schema_name, schema_name)])
    for schema_name in names:
        with CaseStore(note_schema(schema_name), folder) as store:
            assert [case.solution for case in store.all()] == [schema_name]


@pytest.mark.parametrize("name", ["a/b", "..", ".", "x.new", "x.gone", "Ä é", "a\\b", "%41", "A"])
def test_folder_name_of_a_collection_is_ascii_and_reversible(name: str) -> None:
    encoded_name = folder_name(name)
    assert set(encoded_name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-%")
    assert unquote(encoded_name) == name


@pytest.mark.parametrize("name", ["", "\ud800"])
def test_empty_or_invalid_collection_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="collection"):
        folder_name(name)
