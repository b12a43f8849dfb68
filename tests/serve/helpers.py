"""What tests of the command line share: how it is run, and homes with built stores."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from casewright.domains import Domain
from casewright.planner import Reader
from casewright.planner.language_model.smollm2 import converted_folder
from casewright.serve.cli import main
from casewright.stores import default_encoder
from tests.support.sparse import copied

GALAXY = "How much memory is on my Galaxy phone?"
REFUNDS = "How long do refunds take?"
Done = subprocess.CompletedProcess[str]


def command() -> list[str]:
    """The console script beside this Python; where there is none, the module."""
    script = Path(sys.executable).with_name("casewright")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "casewright"]


def environment(home: Path) -> dict[str, str]:
    # The base of the ensemble is converted once, not for each home.
    base = home / "cache" / converted_folder().name
    if converted_folder().is_dir() and not base.exists():
        base.parent.mkdir(parents=True, exist_ok=True)
        base.symlink_to(converted_folder())
    return {**os.environ, "CASEWRIGHT_HOME": str(home), "COLUMNS": "200"}


#: A domain's reader, which takes as long to load as the rest of a question.
_reader = functools.cache(Reader)


def run(
    home: Path,
    *arguments: str | Path,
    folder: Path | None = None,
    typed: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> Done:
    """Run a command in this process: one of its own needs a second and more to start.

    Args:
        home: The home of its stores.
        arguments: What follows its name.
        folder: Where it is run; in the home by default.
        typed: What it reads from stdin; this process's own by default.
        variables: More of its environment.
    """
    # Made here, it keeps its embeddings in the tests' home and not in the first one that runs.
    default_encoder()
    given = [str(argument) for argument in arguments]
    code: object = None
    # Streams as a process has them: what is no Unicode text cannot be written to stdout.
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    with (
        patch.dict(os.environ, {**environment(home), **(variables or {})}),
        patch.object(Domain, "open_reader", lambda own: own.reader and _reader(own.reader)),
        patch.object(sys, "argv", ["casewright", *given]),
        patch.object(sys, "stdin", sys.stdin if typed is None else io.StringIO(typed)),
        contextlib.chdir(folder or home),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
        finally:
            # A process would not end before them either.
            for thread in threading.enumerate():
                if thread.name in ("casewright-encoder", "casewright-reader"):
                    thread.join()
    assert isinstance(code, int)
    return Done(given, code, _written(out), _written(err))


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode()


def run_process(home: Path, *arguments: str | Path, timeout: float = 110) -> Done:
    """Run a command in a process of its own."""
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
def _first() -> tuple[Path, Done]:
    home = new_home(Path(_kept_folder().name) / "home")
    done = run(home, "ask", REFUNDS, "--json")
    assert done.returncode == 0, done.stderr
    return home, done


def built_home() -> Path:
    """A home with built stores, one for all tests."""
    return _first()[0]


def first_answer() -> Done:
    """What ``ask`` printed when the stores of that home were not built yet."""
    return _first()[1]


def copied_home(home: Path, folder: Path) -> Path:
    """A home with a copy of another one's stores, for tests that do harm to them."""
    new_home(folder)
    if (home / "data").is_dir():
        copied(home / "data", folder / "data")
    return folder


def one_line_error(done: Done) -> str:
    """Check that a command ended as a user's error ends, and return what it said."""
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    progress = ("Waiting for another process", "Building the ")
    lines = [line for line in done.stderr.strip().splitlines() if not line.startswith(progress)]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    return lines[0].removeprefix("error: ")


def result(done: Done) -> Any:
    """Check that a command succeeded with nothing but JSON on stdout, and return it."""
    assert done.returncode == 0, (done.stdout, done.stderr)
    return json.loads(done.stdout)
