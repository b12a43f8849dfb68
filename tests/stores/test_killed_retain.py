from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from casewright.stores import Case, CaseStore
from tests.stores.helpers import ROOT, note_schema

START = """
import sys
from casewright.stores import CaseStore, Change
from tests.stores.helpers import note, note_schema, number_id

store = CaseStore(note_schema(), sys.argv[1])

def done(number):
    print(number, flush=True)

"""
RETAIN = """
for i in range(1000):
    case = note(f"question {i}", i, quality=i / 1000, metadata={"provenance": {"run": i}})
    assert store.retain(case).outcome in ("added", "unchanged")
    done(i + 1)
"""
CASES = 40
UPDATE = """
ids = store.add([note(f"question {i}", i, quality=0.0, result=0) for i in range(40)])
for turn in range(1, 100_000):
    change = Change(quality=turn % 7 / 7, result=turn, metadata={"turn": turn})
    store.update({one: change for one in ids})
    done(turn)
"""
DELETE = """
ids = store.add([note(f"question {i}", i, id=number_id(i)) for i in range(300)])
done(0)
for start in range(0, 300, 3):
    store.delete(ids[start : start + 3])
    done(start + 3)
"""


def killed(folder: Path, work: str, after: int, seconds: float) -> int:
    """Let a process work until it is killed; return the last that it was told is done.

    Args:
        folder: Where it works.
        work: What it does.
        after: What it shall have done at least.
        seconds: How long it works on.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", START + work, str(folder)],
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
    """Return all cases, after checking that they are the same by every way of reading."""
    cases = store.all()
    assert store.count() == len(cases)
    hits = store.search("question", 2000, lambda_b=0.0)
    assert sorted(hit.case.id for hit in hits) == [case.id for case in cases]
    known = [case.quality for case in cases if case.quality is not None]
    for hit in hits:
        # The quality in the vector is the one that the case shows.
        if hit.case.quality is not None and known:
            assert hit.score == pytest.approx(hit.case.quality, abs=1e-6)
    return cases


@pytest.mark.parametrize(("after", "seconds"), [(1, 0.0), (80, 0.011)])
def test_killed_process_loses_no_completed_retain(folder: Path, after: int, seconds: float) -> None:
    acknowledged = killed(folder, RETAIN, after, seconds)
    assert after <= acknowledged < 1000
    with CaseStore(note_schema(), folder) as store:
        kept = sorted(consistent_cases(store), key=lambda case: int(case.solution))
        # The one that was under way may have been written.
        assert [case.solution for case in kept] in (
            list(range(acknowledged)),
            list(range(acknowledged + 1)),
        )
        assert [case.metadata["provenance"]["run"] for case in kept] == [c.solution for c in kept]
        told = store.retain(kept[-1])
        assert (told.outcome, told.id) == ("unchanged", kept[-1].id)


def test_two_killed_processes_in_turn_lose_no_completed_retain(folder: Path) -> None:
    first = killed(folder, RETAIN, 20, 0.002)
    second = killed(folder, RETAIN, first + 20, 0.0)
    with CaseStore(note_schema(), folder) as store:
        solutions = {case.solution for case in consistent_cases(store)}
        assert solutions >= set(range(second))
        assert len(solutions) <= second + 1


@pytest.mark.parametrize(("after", "seconds"), [(1, 0.0), (2, 0.07)])
def test_killed_update_leaves_each_case_in_its_old_or_new_state(
    folder: Path, after: int, seconds: float
) -> None:
    acknowledged = killed(folder, UPDATE, after, seconds)
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
    acknowledged = killed(folder, DELETE, 30, 0.004)
    with CaseStore(note_schema(), folder) as store:
        left = {case.solution for case in consistent_cases(store)}
        assert left <= set(range(acknowledged, 300))
        assert left >= set(range(acknowledged + 3, 300))
