"""A service is killed after any write of a request; the next service resumes the request."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.serve.service.boundary_worker import ASKED, ASKS, WAYS
from tests.serve.service.helpers import ROOT

WORKER = [sys.executable, "-m", "tests.serve.service.boundary_worker"]
#: Writes of a plan with three steps: the input, three nodes with a checkpoint each, the steps, and
#: what the request returned.
FEWEST = 12


def states_after_each_write(folder: Path, name: str) -> list[dict[str, Any]]:
    """What was found after each write of a scenario, by both ways to go on."""
    done = subprocess.run(
        [*WORKER, str(folder), name], cwd=ROOT, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    writes = found[-1]["writes"]
    assert [(one["writes"], one["how"]) for one in found] == [
        (number, how) for number in range(writes + 1) for how in WAYS
    ]
    for one in found:
        # Whatever was, the thread is of use.
        assert one["later"] == 200, one
    return found


@pytest.mark.parametrize("name", ["first", "second"])
def test_run_killed_after_any_write_is_reported_correctly_and_resumes(
    tmp_path: Path, name: str
) -> None:
    found = states_after_each_write(tmp_path, name)
    assert found[-1]["writes"] >= FEWEST
    statuses = set()
    for one in found:
        (code, state), (ended, answer) = one["told"], one["ended"]
        assert one["same"], one
        if not one["writes"]:
            # Nothing was kept: the thread is as it was, and the same request is a new one.
            assert code == (404 if name == "first" else 200)
            assert ended == (200 if one["how"] == "repeat" else 404 if name == "first" else 409)
            continue
        assert (code, state["question"]) == (200, ASKED["question"])
        assert (state["answer"] is not None) == (state["status"] == "answered")
        statuses.add(state["status"])
        if state["status"] == "answered" and one["how"] == "resume":
            assert ended == 409
            answer = state["answer"]
        else:
            assert ended == 200, one
        assert [step["status"] for step in answer["steps"]] == ["done"] * 3
        # The last call is that of the later question.
        again = one["calls"][:-1]
        assert not {step["id"] for step in state["steps"]} & set(again), "a step was repeated"
        assert len(again) == len(set(again)), "a step was called twice"
    assert statuses == {"interrupted", "answered"}


def test_reply_killed_after_any_write_reaches_only_its_own_question_once(
    tmp_path: Path,
) -> None:
    for one in states_after_each_write(tmp_path, "reply"):
        (code, state), (ended, told) = one["told"], one["ended"]
        assert code == 200
        assert (state["status"], state["question"]) == ("waiting", ASKS["question"])
        assert one["same"], one
        if one["how"] == "resume":
            assert ended == 409
            continue
        assert (ended, told["status"]) == (202, "waiting"), one
        assert [asked["question"] for asked in told["questions"]] == ["the second?"]
        values = [step["rows"][0]["value"] for step in one["last"]["steps"]]
        assert values[1] == "the user says red, then blue"
        assert one["calls"].count("s1") == 1, "a finished step was repeated"
