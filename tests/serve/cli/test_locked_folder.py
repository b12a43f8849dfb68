from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from casewright.domains import store_opening
from tests.serve.helpers import GALAXY, environment, one_line_error, result, run, run_process
from tests.support.sparse import contents

HOLDER = """
import sys
from casewright.stores.engines import connections
key, engine = connections.acquire(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
connections.release(key, engine)
"""


@contextmanager
def locked_by_another_process(home: Path) -> Iterator[subprocess.Popen[str]]:
    """Lock the home's stores in another process until a line is written to its stdin."""
    folder = home / "data" / "shopping" / "cases"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def run_with_short_wait(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that waits half a second for a locked folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_opening, "LOCK_SECONDS", 0.5)
        return run(home, *arguments)


def test_ask_names_the_folder_that_another_process_locks(own_home: Path) -> None:
    with locked_by_another_process(own_home):
        started = time.monotonic()
        completed = run_with_short_wait(own_home, "ask", GALAXY, "--json")
        assert time.monotonic() - started < 10
    message = one_line_error(completed)
    assert "Another process holds" in message
    assert str(own_home) in message
    assert json.loads(completed.stdout)["error"] == {"kind": "StoreLockedError", "message": message}


def test_refused_build_of_a_locked_folder_leaves_its_stores_unchanged(own_home: Path) -> None:
    shopping = own_home / "data" / "shopping"
    with locked_by_another_process(own_home):
        before = contents(shopping)
        assert "Another process holds" in one_line_error(
            run_with_short_wait(own_home, "domains", "--build", "shopping")
        )
        assert contents(shopping) == before


def test_ask_waits_for_a_locked_folder_and_answers_when_it_is_free(own_home: Path) -> None:
    with locked_by_another_process(own_home) as process:
        timer = threading.Timer(2, process.communicate, ("free\n",))
        timer.start()
        started = time.monotonic()
        answer = result(run(own_home, "ask", GALAXY, "--json"))
        assert time.monotonic() - started > 2
        timer.join()
    assert answer["citations"]


def test_simultaneous_commands_wait_for_each_other_and_build_the_stores_once(
    own_home: Path,
) -> None:
    (own_home / "data" / "shopping" / "built.json").unlink()
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(run_process, own_home, "ask", GALAXY, "--json") for _ in range(2)]
        runs = [future.result() for future in futures]
    assert all("8 GB" in result(completed)["text"] for completed in runs)
    # Only one of the commands builds the stores.
    assert sum("Building" in completed.stderr for completed in runs) == 1


def test_waiting_time_for_a_locked_folder_is_20_to_120_seconds() -> None:
    assert 20 <= store_opening.LOCK_SECONDS <= 120
