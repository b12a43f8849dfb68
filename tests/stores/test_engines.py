from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from casewright.errors import DependencyError, InputError, StoreDamagedError
from casewright.stores import CaseStore
from casewright.stores.engines.edge_shard import folder_name
from tests.stores.helpers import holder, new_folder, note, note_schema, tell
from tests.support.sparse import contents


def written_by(folder: Path) -> str:
    return str(json.loads((folder / "engine.json").read_text())["engine"])


@pytest.fixture
def without_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_edge", None)


def test_new_folder_is_written_by_edge_and_says_so(tmp_path: Path) -> None:
    with CaseStore(note_schema(), tmp_path / "cases") as store:
        store.add([note("q")])
    assert written_by(tmp_path / "cases") == "edge"
    assert not (tmp_path / "cases" / "meta.json").exists()


@pytest.mark.usefixtures("without_edge")
def test_new_folder_is_written_by_qdrant_client_where_edge_is_missing(tmp_path: Path) -> None:
    with CaseStore(note_schema(), tmp_path) as store:
        store.add([note("q")])
        assert store.search("q")
    assert written_by(tmp_path) == "local"
    assert (tmp_path / "meta.json").is_file()


def test_folder_stays_with_the_engine_that_wrote_it(folder: Path, engine: str) -> None:
    for count in range(3):
        with CaseStore(note_schema(), folder) as store:
            assert store.count() == count
            store.add([note(f"question {count}")])
    assert written_by(folder) == engine
    with CaseStore(note_schema(), folder, engine=engine) as store:
        assert store.count() == 3


@pytest.mark.parametrize("used", ["edge", "local"])
def test_folder_whose_record_is_lost_is_known_by_its_files(tmp_path: Path, used: str) -> None:
    with CaseStore(note_schema(), tmp_path, engine=used) as store:
        store.add([note("q")])
    (tmp_path / "engine.json").unlink()
    with CaseStore(note_schema(), tmp_path) as store:
        assert store.count() == 1


def test_other_engine_than_the_folders_is_refused_as_input(folder: Path, engine: str) -> None:
    other = {"edge": "local", "local": "edge"}[engine]
    before = contents(folder)
    with pytest.raises(InputError, match=f"{folder} was written by the engine '{engine}'"):
        CaseStore(note_schema(), folder, engine=other)
    assert contents(folder) == before
    with CaseStore(note_schema(), folder), pytest.raises(InputError, match="written by"):
        CaseStore(note_schema(), folder, engine=other)
    with CaseStore(note_schema(), folder) as store:
        assert store.count() == 0


@pytest.mark.parametrize("where", [":memory:", "http://localhost:1", "folder"])
def test_engine_is_named_for_folders_only_and_must_be_known(tmp_path: Path, where: str) -> None:
    place, name = (tmp_path, "sqlite") if where == "folder" else (where, "edge")
    with pytest.raises(InputError, match=name):
        CaseStore(note_schema(), place, engine=name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("named", [None, "edge"])
def test_folder_of_edge_where_edge_is_missing_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str | None
) -> None:
    new_folder(tmp_path, "edge")
    monkeypatch.setitem(sys.modules, "qdrant_edge", None)
    for _ in range(2):
        with pytest.raises(DependencyError, match="pip install 'qdrant-edge-py"):
            CaseStore(note_schema(), tmp_path, engine=named)


@pytest.mark.parametrize("record", ["", "{", "[]", "{}", '{"engine": "sqlite"}', '{"engine": 3}'])
def test_record_that_names_no_engine_is_damage(tmp_path: Path, record: str) -> None:
    (tmp_path / "engine.json").write_text(record)
    with pytest.raises(StoreDamagedError, match=str(tmp_path)):
        CaseStore(note_schema(), tmp_path)
    assert (tmp_path / "engine.json").read_text() == record


def test_process_that_is_refused_leaves_the_holders_cases_sound(folder: Path) -> None:
    with holder(folder, cases=30) as process:
        for _ in range(3):
            with pytest.raises(Exception, match="Another process holds"):
                CaseStore(note_schema(), folder)
        tell(process, "add and close")
        assert process.stdout is not None
        assert process.stdout.readline() == "closed\n"
    with CaseStore(note_schema(), folder) as store:
        assert {case.solution for case in store.all() if case.solution} == {"last"}
        assert store.count() == 31
        assert len(store.search("question", 50)) == 31


@pytest.mark.parametrize("name", ["Notes", "notes", "_-", "-", "NUL", "a" * 200])
def test_schemas_whose_names_differ_a_little_share_a_folder(folder: Path, name: str) -> None:
    names = [name, name + "-new", "nOtes"]
    for one in names:
        with CaseStore(note_schema(one), folder) as store:
            store.add([note(one, one)])
    for one in names:
        with CaseStore(note_schema(one), folder) as store:
            assert [case.solution for case in store.all()] == [one]


@pytest.mark.parametrize("name", ["a/b", "..", ".", "x.new", "x.gone", "Ä é", "a\\b", "%41", "A"])
def test_folder_name_of_a_collection_is_plain_and_can_be_turned_back(name: str) -> None:
    made = folder_name(name)
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-%")
    assert unquote(made) == name


@pytest.mark.parametrize("name", ["", "\ud800"])
def test_collection_without_a_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="collection"):
        folder_name(name)
