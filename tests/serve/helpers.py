"""What tests of the command line share: how it is run, and homes with built stores."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

GALAXY = "How much memory is on my Galaxy phone?"
Done = subprocess.CompletedProcess[str]


def command() -> list[str]:
    """The console script beside this Python; where there is none, the module."""
    script = Path(sys.executable).with_name("casewright")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "casewright"]


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "CASEWRIGHT_HOME": str(home), "COLUMNS": "200"}


def run(home: Path, *arguments: str | Path, timeout: float = 110) -> Done:
    return run_this(home, [*command(), *map(str, arguments)], timeout)


def run_this(home: Path, whole: list[str], timeout: float = 110) -> Done:
    return subprocess.run(
        whole,
        env=environment(home),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )


def new_home(folder: Path) -> Path:
    """A home without stores that shares the encoder and the embeddings of the tests' home."""
    cache = Path(os.environ["CASEWRIGHT_HOME"]) / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cache").symlink_to(cache.resolve(), target_is_directory=True)
    return folder


@functools.cache
def _kept_folder() -> tempfile.TemporaryDirectory[str]:
    """Lives as long as the process: the cache holds it."""
    return tempfile.TemporaryDirectory(prefix="casewright-tests-")


@functools.cache
def built_home() -> Path:
    """A home with built stores, one for all tests."""
    home = new_home(Path(_kept_folder().name) / "home")
    # Everything is encoded here first, beside whatever else the machine does.
    done = run(home, "domains", "--build", "shopping", timeout=280)
    assert done.returncode == 0, done.stderr
    return home


def copied_home(home: Path, folder: Path) -> Path:
    """A home with a copy of another one's stores, for tests that do harm to them."""
    shutil.copytree(home / "data", new_home(folder) / "data")
    return folder


def one_line_error(done: Done) -> str:
    """Check that a command ended as a user's error ends, and return what it said."""
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    waiting = "Waiting for another process"
    lines = [line for line in done.stderr.strip().splitlines() if not line.startswith(waiting)]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    return lines[0].removeprefix("error: ")


def result(done: Done) -> Any:
    """Check that a command succeeded with nothing but JSON on stdout, and return it."""
    assert done.returncode == 0, (done.stdout, done.stderr)
    return json.loads(done.stdout)
