"""Tests of a small soak run, which finds nothing lost or wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from casewright.errors import InputError
from casewright_soak import kills, measure, workload
from casewright_soak.damage import full_disks
from casewright_soak.trials import Bounds, in_child

#: The most trials of each kind; other kinds have their own tests, or take long.
TRIALS = {
    "random": 2,
    "writes": 2,
    "ingest": 3,
    "service": 3,
    "stores": 3,
    "caches": 3,
    "texts": 30,
    "threads": 3,
    "input": 400,
}


@pytest.mark.parametrize("kind", TRIALS)
def test_soak_trials_find_nothing_lost_or_wrong(kind: str, tmp_path: Path) -> None:
    counts = measure.KINDS[kind].run(Bounds(250, 7, TRIALS[kind]), tmp_path)
    assert (counts.lost, counts.wrong) == (0, [])
    assert counts.sound + counts.told == counts.tried >= TRIALS[kind]


def test_workload_of_documents_stores_chunks_of_each_file(tmp_path: Path) -> None:
    documents = workload.write_documents(tmp_path / "documents")
    chunks = workload.ingest_and_read(tmp_path / "store", documents)
    assert len(chunks) >= len(list(documents.iterdir())) == 6


def test_full_disk_loses_no_data(tmp_path: Path) -> None:
    counts = full_disks(Bounds(250, 7, 1), tmp_path)
    if counts.skipped:
        pytest.skip(counts.skipped)
    assert (counts.tried, counts.lost, counts.wrong) == (1, 0, [])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_training_loses_no_data(tmp_path: Path) -> None:
    counts = measure.KINDS["training"].run(Bounds(250, 7, 1), tmp_path)
    assert (counts.tried, counts.lost, counts.wrong) == (1, 0, [])


def test_service_that_is_killed_under_load_keeps_its_answers() -> None:
    report = measure.soak(0.1, 7, ["clients"], 1)
    assert (report.figures["lost"], report.figures["wrong"]) == (0, 0), report.notes
    assert report.figures["requests"] > 64


def raise_input_error() -> None:
    raise InputError("no")


def raise_key_error() -> None:
    raise KeyError("key")


def abort() -> None:
    os.abort()


def test_in_child_distinguishes_result_input_error_failure_and_death() -> None:
    assert in_child(len, "four") == ("done", 4)
    assert in_child(raise_input_error) == ("told", "InputError: no")
    assert in_child(raise_key_error)[0] == "failed"
    assert in_child(abort) == ("died", "SIGABRT")


def test_run_until_step_kills_a_process_at_successive_steps(tmp_path: Path) -> None:
    files = []
    for step in range(3):
        store = tmp_path / str(step)
        assert (
            in_child(kills.run_until_step, step, str(store), kills.write_and_read, store)[0]
            == "died"
        )
        files.append(len(list(store.rglob("*"))) if store.exists() else -1)
    assert files == sorted(files)
    assert files[0] < files[-1]
