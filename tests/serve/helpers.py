"""Helpers for tests of the command line: running commands, and homes with built stores."""

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
Output = subprocess.CompletedProcess[str]


def command() -> list[str]:
    """Return the console script beside this Python or, without one, ``python -m casewright``."""
    script = Path(sys.executable).with_name("casewright")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "casewright"]


def environment(home: Path) -> dict[str, str]:
    # The base of the ensemble is converted once, not for each home.
    base = home / "cache" / converted_folder().name
    if converted_folder().is_dir() and not base.exists():
        base.parent.mkdir(parents=True, exist_ok=True)
        base.symlink_to(converted_folder())
    return {**os.environ, "CASEWRIGHT_HOME": str(home), "COLUMNS": "200"}


#: Readers are cached, since loading one takes as long as the rest of a question.
_reader = functools.cache(Reader)


def run(
    home: Path,
    *arguments: str | Path,
    folder: Path | None = None,
    stdin: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> Output:
    """Run a command in this process, since a new process takes more than a second to start.

    Args:
        home: Value of ``CASEWRIGHT_HOME``.
        arguments: Command-line arguments after ``casewright``.
        folder: Working directory; ``home`` by default.
        stdin: Text on stdin; this process's stdin by default.
        variables: Additional environment variables.
    """
    # Created here, the encoder caches embeddings in the tests' home instead of in ``home``.
    default_encoder()
    argv = [str(argument) for argument in arguments]
    exit_code: object = None
    # Streams as strict as those of a process: stdout refuses text that is not Unicode.
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    with (
        patch.dict(os.environ, {**environment(home), **(variables or {})}),
        patch.object(Domain, "open_reader", lambda self: self.reader and _reader(self.reader)),
        patch.object(sys, "argv", ["casewright", *argv]),
        patch.object(sys, "stdin", sys.stdin if stdin is None else io.StringIO(stdin)),
        contextlib.chdir(folder or home),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            exit_code = end.code
        finally:
            # A process also waits for these threads before it ends.
            for thread in threading.enumerate():
                if thread.name in ("casewright-encoder", "casewright-reader"):
                    thread.join()
    assert isinstance(exit_code, int)
    return Output(argv, exit_code, _read_text(out), _read_text(err))


def _read_text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode()


def run_process(home: Path, *arguments: str | Path, timeout: float = 110) -> Output:
    """Run a command in a new process."""
    return run_argv(home, [*command(), *map(str, arguments)], timeout)


def run_argv(home: Path, argv: list[str], timeout: float = 110) -> Output:
    return subprocess.run(
        argv,
        env=environment(home),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )


def new_home(folder: Path) -> Path:
    """Return a home without stores that shares the encoder and embeddings of the tests' home."""
    cache = Path(os.environ["CASEWRIGHT_HOME"]) / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cache").symlink_to(cache.resolve(), target_is_directory=True)
    return folder


@functools.cache
def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that lives as long as the process, since the cache refers to it."""
    return tempfile.TemporaryDirectory(prefix="casewright-tests-")


@functools.cache
def _first_run() -> tuple[Path, Output]:
    home = new_home(Path(_temporary_folder().name) / "home")
    completed = run(home, "ask", REFUNDS, "--json")
    assert completed.returncode == 0, completed.stderr
    return home, completed


def built_home() -> Path:
    """Return a home with built stores, which all tests share."""
    return _first_run()[0]


def first_answer() -> Output:
    """Return the output of the ``ask`` that built the stores of ``built_home``."""
    return _first_run()[1]


def copied_home(home: Path, folder: Path) -> Path:
    """Return a home with a copy of another home's stores, for tests that change them."""
    new_home(folder)
    if (home / "data").is_dir():
        copied(home / "data", folder / "data")
    return folder


def one_line_error(completed: Output) -> str:
    """Check that a command ended with a one-line error, and return its message."""
    assert completed.returncode == 2, (completed.returncode, completed.stdout, completed.stderr)
    assert "Traceback" not in completed.stderr
    notices = ("Waiting for another process", "Building the ")
    lines = [line for line in completed.stderr.strip().splitlines() if not line.startswith(notices)]
    assert len(lines) == 1, completed.stderr
    assert lines[0].startswith("error: ")
    return lines[0].removeprefix("error: ")


def result(completed: Output) -> Any:
    """Check that a command succeeded and printed only JSON, and return the JSON."""
    assert completed.returncode == 0, (completed.stdout, completed.stderr)
    return json.loads(completed.stdout)
