"""Progress of long work: a bar on a terminal, and lines elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time

import pytest

from casewright.stores.progress import show_progress

#: Two threads show a bar each, and one of them prints a note.
TERMINAL_SCRIPT = """
import threading, time
from casewright.stores.progress import note, show_progress
def export():
    with show_progress("Exporting"):
        time.sleep(0.5)
other = threading.Thread(target=export)
other.start()
with show_progress("Building", 4, "cases") as advance:
    for _ in range(4):
        time.sleep(0.2)
        advance(1)
    note("Half of it [is] done.")
other.join()
print("result")
"""


def test_progress_without_a_terminal_prints_lines_with_count_and_time_left(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with show_progress("Building", 20, "cases") as advance:
        for _ in range(2):
            time.sleep(1.1)
            advance(5)
    assert capfd.readouterr() == (
        "",
        "Building: 5 of 20 cases (25 %), 1 s, 3 s left\n"
        "Building: 10 of 20 cases (50 %), 2 s, 2 s left\n",
    )


def test_progress_prints_no_line_for_work_that_ends_quickly(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with show_progress("Building", 1000, "cases") as advance:
        for _ in range(1000):
            advance(1)
    assert capfd.readouterr() == ("", "")


def test_progress_prints_a_line_after_max_pause_without_further_progress(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with show_progress("Building", 1000, "cases", max_pause=0.2) as advance:
        advance(3)
        time.sleep(0.5)
    with show_progress("Exporting", max_pause=0.2):
        time.sleep(0.5)
    out, err = capfd.readouterr()
    assert out == ""
    assert "Building: 3 of 1000 cases (0 %), 0 s, " in err
    assert "Exporting: 0 s so far\n" in err


def test_progress_on_a_terminal_shows_a_bar_for_each_thread_and_notes() -> None:
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", TERMINAL_SCRIPT],
        stdout=subprocess.PIPE,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(terminal)
    screen = _read_screen(controller)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"result\n"), screen
    assert re.search(r"Building .* 4/4", screen)
    assert "Exporting" in screen
    assert "Half of it [is] done." in screen


def _read_screen(controller: int) -> str:
    parts = []
    with open(controller, "rb", buffering=0) as stream:
        try:
            while part := stream.read(4096):
                parts.append(part)
        except OSError:
            # Linux raises an error when the process has closed its end.
            pass
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", b"".join(parts).decode())
