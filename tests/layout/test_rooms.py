from __future__ import annotations

import tomllib
from importlib import import_module
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path

import pytest

from casewright.domains.shopping.data import FILE_NAMES, data_file
from tests.layout.sources import OWN_FILES, ROOMS, ROOT, lines_of


@pytest.mark.parametrize("room", ROOMS)
def test_source_folder_is_at_the_root_and_linked_into_the_package(room: str) -> None:
    link = ROOT / "src" / "casewright" / room
    assert (ROOT / room / "__init__.py").is_file()
    assert not (ROOT / room).is_symlink()
    assert link.is_symlink()
    assert link.readlink() == Path("..", "..", room)
    assert link.resolve() == ROOT / room


@pytest.mark.parametrize("room", ROOMS)
def test_source_folder_is_imported_from_the_files_at_the_root(room: str) -> None:
    file = import_module(f"casewright.{room}").__file__
    assert file is not None
    assert Path(file).resolve() == ROOT / room / "__init__.py"


def test_package_contains_only_source_folders_and_its_own_files() -> None:
    names = {p.name for p in (ROOT / "src" / "casewright").iterdir() if p.name[0] not in "._"}
    assert names == {*ROOMS, "errors.py", "extensions.py", "py.typed"}


def test_types_and_data_ship_with_the_package() -> None:
    assert (files("casewright") / "py.typed").is_file()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shipped = settings["tool"]["setuptools"]["package-data"]
    assert "py.typed" in shipped["casewright"]
    assert "data/*.jsonl" in shipped["casewright.domains.shopping"]
    assert all(data_file(name).is_file() for name in FILE_NAMES)


def test_console_script_is_the_command_line() -> None:
    entry_points = distribution("casewright").entry_points.select(group="console_scripts")
    assert {e.name: e.value for e in entry_points} == {"casewright": "casewright.serve.cli:main"}


def test_no_file_is_longer_than_500_lines() -> None:
    lengths = {str(file.relative_to(ROOT)): lines_of(file) for file in OWN_FILES}
    assert len(lengths) > 60
    assert {name: length for name, length in lengths.items() if length > 500} == {}


def test_tests_have_the_same_folders_as_the_sources() -> None:
    folders = {p.name for p in (ROOT / "tests").iterdir() if p.is_dir() and p.name[0] not in "._"}
    assert folders <= {*ROOMS, "docs", "examples", "layout", "packages", "support"}
    for folder in folders:
        assert (ROOT / "tests" / folder / "__init__.py").is_file()
