"""Roots of ingested folders: their list, their names in citations, and their removal."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from casewright.errors import InputError
from casewright.stores import CaseStore
from casewright.stores.documents.cases import remove_root, root_names, roots_of
from casewright.stores.documents.ingest import ingest
from tests.stores.document_files import contents, document_store, write
from tests.stores.helpers import note


def test_roots_of_a_store_are_its_ingested_folders(location: str, tmp_path: Path) -> None:
    folders = [write(tmp_path / name, {"a.txt": f"Red {name}."}) for name in ("c", "a", "b")]
    with document_store(location=location) as store:
        assert roots_of(store) == []
        store.add([note("what is red", "an apple")])
        assert roots_of(store) == []
        for folder in folders:
            ingest(store, folder)
        assert roots_of(store) == sorted(str(folder) for folder in folders)


def test_roots_of_another_tenant_are_neither_listed_nor_removed(tmp_path: Path) -> None:
    folder = write(tmp_path / "docs", {"a.txt": "Red apples."})
    with document_store() as store, store.for_tenant("acme") as acme, store.for_tenant("z") as zeta:
        ingest(acme, folder)
        assert (roots_of(acme), roots_of(zeta)) == ([str(folder)], [])
        with pytest.raises(InputError, match="no documents at all"):
            remove_root(zeta, folder)
        assert acme.count() == 1


def test_root_name_is_the_last_path_part_if_unique() -> None:
    names = root_names(["/a/docs", "/b/docs", "/b/src", "fruit"])
    assert names == {"/a/docs": "/a/docs", "/b/docs": "/b/docs", "/b/src": "src", "fruit": "fruit"}


def test_remove_root_works_for_a_deleted_folder_and_keeps_other_cases(tmp_path: Path) -> None:
    removed, other = (
        write(tmp_path / name / "docs", {"a.txt": "Red apples.", "b.txt": "Green pears."})
        for name in ("here", "other")
    )
    with document_store() as store:
        store.add([note("what is red", "an apple")])
        ingest(store, other)
        before = contents(store)
        ingest(store, removed)
        shutil.rmtree(removed)
        assert remove_root(store, removed) == 2
        assert contents(store) == before


def test_remove_root_accepts_any_path_to_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "docs", {"a.txt": "Red apples."})
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    with document_store() as store:
        for path in ("docs", "./docs/", "x/../docs", "link", folder):
            ingest(store, folder)
            assert remove_root(store, path) == 1


def test_remove_root_accepts_a_given_root_name(tmp_path: Path) -> None:
    with document_store() as store:
        ingest(store, write(tmp_path / "docs", {"a.txt": "Red apples."}), root="fruit")
        assert remove_root(store, "fruit") == 1
        assert store.count() == 0


@pytest.mark.parametrize("root", ["", "docs/a.txt", "nowhere", "a\0b", "~nobody-here/x", "\udce9"])
def test_remove_root_refuses_an_unknown_root_and_lists_known_roots(
    tmp_path: Path, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with document_store() as store:
        _ingest_folders(store, tmp_path, 12)
        with pytest.raises(InputError, match="nothing was removed") as exc_info:
            remove_root(store, root)
        assert str(exc_info.value).count(str(tmp_path / "r")) == 10
        assert "and 2 more" in str(exc_info.value)
        assert store.count() == 12


def _ingest_folders(store: CaseStore, folder: Path, count: int) -> None:
    for number in range(count):
        ingest(store, write(folder / f"r{number:02}", {"a.txt": f"Item {number}."}))
