from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from casewright.stores import CaseStore
from tests.stores.helpers import ROOT, note_schema

BATCH = 20
WRITER = """
import sys
from casewright.stores import CaseStore
from tests.stores.helpers import note, note_schema

store = CaseStore(note_schema(), sys.argv[1])
first = store.count()
for turn in range(100_000):
    solutions = range(first + turn * 20, first + turn * 20 + 20)
    store.add([note(f"question {i}", i) for i in solutions])
    print(first + turn * 20 + 20, flush=True)
"""


def killed_while_writing(folder: Path, seconds: float) -> int:
    """Let a process write until it is killed; return how many cases it was told are written."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    with process.stdout as lines:
        acknowledged = int(lines.readline())
        time.sleep(seconds)
        process.kill()
        for line in lines:
            acknowledged = int(line) if line.endswith("\n") else acknowledged
    process.wait()
    return acknowledged


@pytest.mark.parametrize("seconds", [0.0, 0.2])
def test_process_killed_while_writing_loses_no_acknowledged_case(
    folder: Path, seconds: float
) -> None:
    # The second one writes to what a killed process left.
    for _ in range(2):
        acknowledged = killed_while_writing(folder, seconds)
        assert acknowledged >= BATCH
        with CaseStore(note_schema(), folder) as store:
            kept = {case.solution for case in store.all()}
            assert kept >= set(range(acknowledged))
            assert len(store.search("question", 100_000)) == len(kept) == store.count()
        # Edge writes a batch whole or not at all.
        assert len(kept) % BATCH == 0


LEAVER = """
import sys, threading, time
from casewright.stores import CaseStore
from tests.stores.helpers import note, note_schema

store = CaseStore(note_schema(), sys.argv[1])
store.add([note(f"question {i}", "x" * 500) for i in range(1000)])

def use():
    while True:
        try:
            store.search("question", 50)
            store.all()
        except Exception:
            return

for _ in range(4):
    threading.Thread(target=use, daemon=True).start()
time.sleep(0.2)
"""


def test_process_exits_without_output_while_daemon_threads_search(tmp_path: Path) -> None:
    for turn in range(3):
        command = [sys.executable, "-c", LEAVER, str(tmp_path / str(turn))]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
