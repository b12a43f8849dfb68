"""The tests of what changed since the last commit, for ``make check``."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.layout.sources import ROOT, TEST_FILES, imports_of, module_of


def affected(changed: Iterable[str]) -> list[str]:
    """Return the test files that changed, and those of every other changed Python file.

    Args:
        changed: Paths from the repository's root.
    """
    tests = [file for file in TEST_FILES if file.name.startswith("test_")]
    files = [ROOT / name for name in changed if name.endswith(".py")]
    found = {one for file in files for one in ([file] if file in tests else _near(file, tests))}
    return sorted(str(file.relative_to(ROOT)) for file in found if file.is_file())


def _near(file: Path, tests: Iterable[Path]) -> list[Path]:
    """Return the tests that import a file or have its name; else those of its folder or room."""
    path, here = file.relative_to(ROOT), ROOT / "tests"
    of_room = [test for test in tests if test.relative_to(ROOT).parts[1] == path.parts[0]]
    for part in [file, *(ROOT / folder for folder in path.parents[:-2])]:
        module, name = module_of(part), part.stem
        starts = (f"test_{name}_", f"test_{part.parent.name}_{name}_")
        named = [test for test in of_room if f"{test.stem}_".startswith(starts)]
        inside = [test for test in of_room if here / part.relative_to(ROOT) in test.parents]
        users = [test for test in tests if any(one.module == module for one in imports_of(test))]
        if found := [*named, *inside, *users]:
            return found
    return of_room


def _changed() -> list[str]:
    command = ["git", "-C", str(ROOT), "status", "--porcelain", "--no-renames", "-uall"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # Two letters of state stand before each path.
    return [line[3:] for line in told.splitlines()]


if __name__ == "__main__":
    print(*affected(_changed()))
