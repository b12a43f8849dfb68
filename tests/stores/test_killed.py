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


def kill_writing_process(folder: Path, seconds: float) -> int:
    """Kill a process some seconds after its first write; return how many cases it acknowledged."""
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
    # The second process writes to the folder that the first one left.
    for _ in range(2):
        acknowledged = kill_writing_process(folder, seconds)
        with CaseStore(note_schema(), folder) as store:
            solutions = {case.solution for case in store.all()}
            assert solutions >= set(range(acknowledged))
            assert len(store.search("question", 100_000)) == len(solutions) == store.count()
        # Edge writes all cases of a batch or none.
        assert len(solutions) % BATCH == 0


SEARCHER = """
import sys, threading, time
from casewright.stores import CaseStore
from tests.stores.helpers import note, note_schema

store = CaseStore(note_schema(), sys.argv[1])
store.add([note(f"question {i}", "x" * 500) for i in range(1000)])

def search_until_error():
    while True:
        try:
            store.search("question", 50)
            store.all()
        except Exception:
            return

for _ in range(4):
    threading.Thread(target=search_until_error, daemon=True).start()
time.sleep(0.2)
"""


def test_process_exits_without_output_while_daemon_threads_search(tmp_path: Path) -> None:
    for turn in range(3):
        command = [sys.executable, "-c", SEARCHER, str(tmp_path / str(turn))]
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert (process.returncode, process.stdout, process.stderr) == (0, "", "")
