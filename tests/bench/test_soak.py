"""The campaign finds what is lost or wrong, and finds nothing here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from casewright.bench.soak import damage, kills, measure
from casewright.bench.soak.child import in_child
from casewright.bench.soak.counts import Counts
from casewright.bench.soak.disk import full_disks
from casewright.bench.soak.fuzz import fuzzed
from casewright.errors import InputError

TRIALS: list[Callable[[float, int, Path], Counts]] = [
    kills.random_kills,
    kills.kills_of_writes,
    kills.kills_of_ingest,
    damage.damaged_stores,
    damage.damaged_caches,
    full_disks,
    fuzzed,
]


@pytest.mark.parametrize("trial", TRIALS)
def test_nothing_is_lost_or_wrong(
    trial: Callable[[float, int, Path], Counts], tmp_path: Path
) -> None:
    counts = trial(1.0, 7, tmp_path)
    if counts.skipped:
        pytest.skip(counts.skipped)
    assert (counts.lost, counts.wrong) == (0, [])
    assert counts.sound + counts.told == counts.tried >= 1


def test_service_that_is_killed_under_clients_keeps_what_it_answered(tmp_path: Path) -> None:
    report = measure.soak(0.1, 7, ["clients"])
    assert (report.figures["lost"], report.figures["wrong"]) == (0, 0), report.notes
    assert report.figures["tried"] > 64


def refused() -> None:
    raise InputError("no")


def failing() -> None:
    raise KeyError("key")


def dying() -> None:
    os.abort()


def test_what_becomes_of_a_child_is_told_apart() -> None:
    assert in_child(len, "four") == ("done", 4)
    assert in_child(refused) == ("told", "InputError: no")
    assert in_child(failing)[0] == "failed"
    assert in_child(dying) == ("died", "SIGABRT")


def test_step_at_which_a_process_is_killed_is_one_after_the_other(tmp_path: Path) -> None:
    found = []
    for step in range(3):
        place = tmp_path / str(step)
        assert in_child(kills.killed_at, step, str(place), kills.written, place)[0] == "died"
        found.append(len(list(place.rglob("*"))) if place.exists() else -1)
    assert found == sorted(found)
    assert found[0] < found[-1]
