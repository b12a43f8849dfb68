from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from casewright.stores import Case, CaseStore
from tests.stores.helpers import ROOT, note_schema

SETUP = """
import sys
from casewright.stores import CaseStore, Change
from tests.stores.helpers import note, note_schema, number_id

store = CaseStore(note_schema(), sys.argv[1])

def report(number):
    print(number, flush=True)

"""
RETAIN = """
for i in range(1000):
    case = note(f"question {i}", i, quality=i / 1000, metadata={"provenance": {"run": i}})
    assert store.retain(case).outcome in ("added", "unchanged")
    report(i + 1)
"""
CASES = 40
UPDATE = """
ids = store.add([note(f"question {i}", i, quality=0.0, result=0) for i in range(40)])
for turn in range(1, 100_000):
    change = Change(quality=turn % 7 / 7, result=turn, metadata={"turn": turn})
    store.update({case_id: change for case_id in ids})
    report(turn)
"""
DELETE = """
ids = store.add([note(f"question {i}", i, id=number_id(i)) for i in range(300)])
report(0)
for start in range(0, 300, 3):
    store.delete(ids[start : start + 3])
    report(start + 3)
"""


def kill_process(folder: Path, script: str, after: int, seconds: float) -> int:
    """Kill a process that runs a script; return the last number that it reported.

    Args:
        folder: The folder of the process's store.
        script: The code that changes the store and reports its progress.
        after: The number that the process must have reported.
        seconds: The time from that report to the kill.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", SETUP + script, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    with process.stdout as lines:
        acknowledged = int(lines.readline())
        while acknowledged < after:
            acknowledged = int(lines.readline())
        time.sleep(seconds)
        process.kill()
        for line in lines:
            acknowledged = int(line) if line.endswith("\n") else acknowledged
    assert process.wait() == -9
    return acknowledged


def consistent_cases(store: CaseStore) -> list[Case]:
    """Return all cases; assert that every read method returns the same cases."""
    cases = store.all()
    assert store.count() == len(cases)
    hits = store.search("question", 2000, lambda_b=0.0)
    assert sorted(hit.case.id for hit in hits) == [case.id for case in cases]
    for hit in hits:
        # The vector and the payload must have the same quality.
        if hit.case.quality is not None:
            assert hit.score == pytest.approx(hit.case.quality, abs=1e-6)
    return cases


@pytest.mark.parametrize(("after", "seconds"), [(1, 0.0), (80, 0.011)])
def test_killed_process_loses_no_completed_retain(folder: Path, after: int, seconds: float) -> None:
    acknowledged = kill_process(folder, RETAIN, after, seconds)
    assert after <= acknowledged < 1000
    with CaseStore(note_schema(), folder) as store:
        cases = sorted(consistent_cases(store), key=lambda case: int(case.solution))
        # The interrupted retain may have been completed.
        assert [case.solution for case in cases] in (
            list(range(acknowledged)),
            list(range(acknowledged + 1)),
        )
        assert [case.metadata["provenance"]["run"] for case in cases] == [c.solution for c in cases]
        retained = store.retain(cases[-1])
        assert (retained.outcome, retained.id) == ("unchanged", cases[-1].id)


def test_two_killed_processes_in_turn_lose_no_completed_retain(folder: Path) -> None:
    first = kill_process(folder, RETAIN, 20, 0.002)
    second = kill_process(folder, RETAIN, first + 20, 0.0)
    with CaseStore(note_schema(), folder) as store:
        solutions = {case.solution for case in consistent_cases(store)}
        assert solutions >= set(range(second))
        assert len(solutions) <= second + 1


@pytest.mark.parametrize(("after", "seconds"), [(1, 0.0), (2, 0.07)])
def test_killed_update_leaves_each_case_in_its_old_or_new_state(
    folder: Path, after: int, seconds: float
) -> None:
    acknowledged = kill_process(folder, UPDATE, after, seconds)
    with CaseStore(note_schema(), folder) as store:
        cases = consistent_cases(store)
        assert sorted(case.solution for case in cases) == list(range(CASES))
        turns = {case.result for case in cases}
        assert turns <= {acknowledged, acknowledged + 1}
        for case in cases:
            assert case.metadata == {"turn": case.result}
            assert case.quality == pytest.approx(case.result % 7 / 7)
        for turn in turns:
            assert store.count({"turn": turn}) == sum(case.result == turn for case in cases)
        (hit,) = store.search({"question": cases[0].problem["question"]}, 1)
        assert hit.relevance == pytest.approx(0.75)


def test_killed_delete_leaves_each_case_complete_or_deleted(folder: Path) -> None:
    acknowledged = kill_process(folder, DELETE, 30, 0.004)
    with CaseStore(note_schema(), folder) as store:
        solutions = {case.solution for case in consistent_cases(store)}
        assert solutions <= set(range(acknowledged, 300))
        assert solutions >= set(range(acknowledged + 3, 300))
