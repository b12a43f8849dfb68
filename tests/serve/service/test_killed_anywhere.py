"""A service is killed after any write of a request; the next service resumes it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.serve.service.boundary_worker import ASKING_REQUEST, CONTINUATIONS, QUICK_REQUEST
from tests.serve.service.helpers import ROOT

WORKER = [sys.executable, "-m", "tests.serve.service.boundary_worker"]
#: Writes of three steps: the input, three nodes with a checkpoint each, the steps, the response.
MIN_WRITES = 12


def outcomes_after_each_write(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the outcomes after a kill at each write of a scenario, for each way to continue."""
    process = subprocess.run(
        [*WORKER, str(folder), name], cwd=ROOT, capture_output=True, text=True, timeout=280
    )
    assert process.returncode == 0, process.stderr[-4000:]
    outcomes = [json.loads(line) for line in process.stdout.splitlines()]
    writes = outcomes[-1]["writes"]
    assert [(outcome["writes"], outcome["how"]) for outcome in outcomes] == [
        (number, how) for number in range(writes + 1) for how in CONTINUATIONS
    ]
    for outcome in outcomes:
        # The thread accepts another question.
        assert outcome["later"] == 200, outcome
    return outcomes


@pytest.mark.parametrize("name", ["first", "second"])
def test_run_killed_after_any_write_is_reported_correctly_and_resumes(
    tmp_path: Path, name: str
) -> None:
    outcomes = outcomes_after_each_write(tmp_path, name)
    assert outcomes[-1]["writes"] >= MIN_WRITES
    statuses = set()
    for outcome in outcomes:
        (code, state), (code_after, answer) = outcome["thread"], outcome["response"]
        repeats = outcome["how"] == "repeat"
        assert outcome["unchanged"], outcome
        if not outcome["writes"]:
            # Nothing was stored, so the thread is unchanged and the repetition is a new request.
            assert code == (404 if name == "first" else 200)
            assert code_after == (200 if repeats else 404 if name == "first" else 409)
            continue
        assert (code, state["question"]) == (200, QUICK_REQUEST["question"])
        assert (state["answer"] is not None) == (state["status"] == "answered")
        statuses.add(state["status"])
        if state["status"] == "answered" and not repeats:
            assert code_after == 409
            answer = state["answer"]
        else:
            assert code_after == 200, outcome
        assert [step["status"] for step in answer["steps"]] == ["done"] * 3
        # The last call belongs to the later question.
        calls = outcome["calls"][:-1]
        assert not {step["id"] for step in state["steps"]} & set(calls), "a step was repeated"
        assert len(calls) == len(set(calls)), "a step was called twice"
    assert statuses == {"interrupted", "answered"}


def test_reply_killed_after_any_write_reaches_only_its_own_question_once(
    tmp_path: Path,
) -> None:
    for outcome in outcomes_after_each_write(tmp_path, "reply"):
        (code, state), (code_after, result) = outcome["thread"], outcome["response"]
        assert code == 200
        assert (state["status"], state["question"]) == ("waiting", ASKING_REQUEST["question"])
        assert outcome["unchanged"], outcome
        if outcome["how"] == "resume":
            assert code_after == 409
            continue
        assert (code_after, result["status"]) == (202, "waiting"), outcome
        assert [question["question"] for question in result["questions"]] == ["the second?"]
        values = [step["rows"][0]["value"] for step in outcome["final_answer"]["steps"]]
        assert values[1] == "the user says red, then blue"
        assert outcome["calls"].count("s1") == 1, "a finished step was repeated"
