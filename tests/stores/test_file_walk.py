from __future__ import annotations

from pathlib import Path

import pytest

from casewright.stores.documents.file_walk import is_chosen, matches, walk
from tests.stores.document_files import write

FILES = ("b.md", "a.txt", "docs/api/x.md", "docs/api.md", "docs/build/y.md", "src/a/b/c.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, dict.fromkeys(FILES, "x")).resolve()


def walk_sources(folder: Path, **patterns: tuple[str, ...]) -> list[str]:
    return [file.relative_path for file in walk(folder, **patterns).files]


def test_walk_returns_files_in_path_order_with_sizes(folder: Path) -> None:
    assert walk_sources(folder) == sorted(FILES)
    assert {file.size for file in walk(folder).files} == {1}
    assert all(file.path == folder / file.relative_path for file in walk(folder).files)


@pytest.mark.parametrize(
    ("pattern", "included"),
    [
        ("*.md", {"b.md", "docs/api/x.md", "docs/api.md", "docs/build/y.md"}),
        ("**/*.md", {"b.md", "docs/api/x.md", "docs/api.md", "docs/build/y.md"}),
        ("docs", {"docs/api/x.md", "docs/api.md", "docs/build/y.md"}),
        ("./docs/", {"docs/api/x.md", "docs/api.md", "docs/build/y.md"}),
        ("docs/api", {"docs/api/x.md"}),
        ("docs/*/?.md", {"docs/api/x.md", "docs/build/y.md"}),
        ("build", {"docs/build/y.md"}),
        ("a", {"src/a/b/c.py"}),
        ("a/b", set()),
        ("**/a/b", {"src/a/b/c.py"}),
        ("[ab].*", {"b.md", "a.txt"}),
        ("*.MD", set()),
    ],
)
def test_include_and_exclude_patterns_match_paths_folders_and_names(
    folder: Path, pattern: str, included: set[str]
) -> None:
    assert set(walk_sources(folder, include=(pattern,))) == included
    assert set(walk_sources(folder, exclude=(pattern,))) == set(FILES) - included
    assert {name for name in FILES if is_chosen(name, (pattern,))} == included
    assert {name for name in FILES if is_chosen(name, (), (pattern,))} == set(FILES) - included


def test_exclude_pattern_overrides_include_pattern(folder: Path) -> None:
    assert walk_sources(folder, include=("*.md", "src"), exclude=("docs/build", "b.md")) == [
        "docs/api.md",
        "docs/api/x.md",
        "src/a/b/c.py",
    ]


def test_empty_pattern_list_matches_no_path() -> None:
    assert not matches("docs/a.md", ())
