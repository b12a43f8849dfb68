"""The tests of the files that changed since the last commit, for ``make check``."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.layout.sources import ROOT, TEST_FILES, imports_of, module_of


def affected(changed: Iterable[str]) -> list[str]:
    """Return the changed test files, and the test files for the other changed Python files.

    Args:
        changed: Paths from the repository's root.
    """
    tests = [file for file in TEST_FILES if file.name.startswith("test_")]
    files = [ROOT / name for name in changed if name.endswith(".py")]
    run = {test for file in files for test in ([file] if file in tests else _near(file, tests))}
    return sorted(str(test.relative_to(ROOT)) for test in run if test.is_file())


def _near(file: Path, tests: Iterable[Path]) -> list[Path]:
    """Return the tests that import a file or have its name; else those of its folder or room."""
    path = file.relative_to(ROOT)
    of_room = [test for test in tests if test.relative_to(ROOT).parts[1] == path.parts[0]]
    for part in [file, *(ROOT / folder for folder in path.parents[:-2])]:
        module, name = module_of(part), part.stem
        starts = (f"test_{name}_", f"test_{part.parent.name}_{name}_")
        named = [test for test in of_room if f"{test.stem}_".startswith(starts)]
        folder = ROOT / "tests" / part.relative_to(ROOT)
        inside = [test for test in of_room if folder in test.parents]
        users = [test for test in tests if module in {each.module for each in imports_of(test)}]
        if near := [*named, *inside, *users]:
            return near
    return of_room


def _changed() -> list[str]:
    command = ["git", "-C", str(ROOT), "status", "--porcelain", "--no-renames", "-uall"]
    status = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # Each line is a status of two letters, a space, and a path.
    return [line[3:] for line in status.splitlines()]


if __name__ == "__main__":
    print(*affected(_changed()))
