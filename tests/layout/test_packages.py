"""Tests of the packages beside the core, which finds them only by their entry points."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from casewright.extensions import extension, extensions
from casewright.serve.settings.settings import Settings
from tests.layout.sources import ADDED, ADDED_FILES, PACKAGE_FILES, ROOM_FILES, ROOT, imports_of

#: The subjects of the three domains, as texts write them, and the names of the other packages.
SUBJECTS = re.compile(
    r"math.?24|backgammon|(\b|_)legal\b|casewright_(mcbr|soak|studies)", re.IGNORECASE
)
VARIABLE = re.compile(r"CASEWRIGHT_[A-Z_]*[A-Z]")


@pytest.mark.parametrize("name", ADDED)
def test_package_is_one_flat_folder_that_is_linked_into_src(name: str) -> None:
    link = ROOT / "src" / name
    assert link.readlink() == Path("..", "packages", name)
    assert Path(str(import_module(name).__file__)).resolve() == (
        ROOT / "packages" / name / "__init__.py"
    )
    assert {file.parent for file in ADDED_FILES if name in file.parts} == {ROOT / "packages" / name}


def test_core_files_do_not_name_any_package() -> None:
    words_by_file = {
        str(file.relative_to(ROOT)): SUBJECTS.findall(file.read_text(encoding="utf-8"))
        for file in [*ROOM_FILES, *PACKAGE_FILES]
    }
    assert {file: words for file, words in words_by_file.items() if words} == {}


def test_packages_share_code_only_through_casewright_mcbr() -> None:
    for file in ADDED_FILES:
        roots = {item.module.split(".")[0] for item in imports_of(file)}
        allowed = {file.parent.name, "casewright_mcbr"}
        assert roots & {*ADDED} <= allowed, file


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("domain", {"backgammon", "legal", "math24"}),
        ("bench_command", {"backgammon", "encoder", "legal", "math24"}),
        ("finetune_command", {"backgammon", "math24"}),
    ],
)
def test_domains_benches_and_trainings_of_packages_are_found(kind: str, names: set[str]) -> None:
    assert names <= set(extensions(kind))
    assert all(extension(kind, name) is not None for name in names)


def test_every_environment_variable_of_a_domain_or_package_is_an_entry_point() -> None:
    files = [*ADDED_FILES, *(ROOT / "domains").rglob("*.py")]
    variables = {name for file in files for name in VARIABLE.findall(file.read_text("utf-8"))}
    settings = {f"CASEWRIGHT_{name.upper()}" for name in Settings.model_fields}
    assert variables - settings == set(extensions("variable"))
