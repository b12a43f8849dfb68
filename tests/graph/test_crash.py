"""A new process resumes a killed run and repeats no finished step."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from tests.graph.crash_worker import CONFIG, dag_of, expected_values
from tests.graph.helpers import running_process

WORKER = [sys.executable, "-m", "tests.graph.crash_worker"]


def calls(folder: Path, seed: int) -> list[dict[str, Any]]:
    log = folder / f"{seed}.log"
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]


def run_until_killed(orders: Sequence[str], mode: str, folder: Path, *seeds: int) -> None:
    """Run each plan in several processes, one after the other, each of which kills itself.

    Args:
        orders: Command and limit of each process: ``resume:5`` resumes until five calls have begun,
            ``run:midway`` runs until some results are saved.
        mode: ``sync`` or ``async``.
        folder: The folder of the plans' files.
        seeds: The seeds of the plans.
    """
    command = [*WORKER, ",".join(orders), mode, str(folder), *map(str, seeds)]
    with running_process(command, subprocess.DEVNULL, subprocess.DEVNULL, {}) as worker:
        assert worker.wait() == 0


def resume(mode: str, folder: Path, *seeds: int) -> dict[int, list[dict[str, Any]]]:
    """Resume each plan in a new process, and return the outcomes by seed."""
    process = subprocess.run(
        [*WORKER, "resume", mode, str(folder), *map(str, seeds)],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert process.stderr == ""
    return {seed: json.loads((folder / f"{seed}.json").read_text()) for seed in seeds}


def saved_state(folder: Path, seed: int) -> tuple[dict[str, Any], set[str]]:
    """Return the checkpointed state, and the steps whose results are acknowledged."""
    with SqliteSaver.from_conn_string(str(folder / f"{seed}.db")) as saver:
        entry = saver.get_tuple(CONFIG)
    if entry is None:
        return {}, set()
    state = entry.checkpoint["channel_values"]
    writes = entry.pending_writes or []
    finished = {
        outcome["step"]
        for _, channel, value in writes
        for outcome in (
            [value] if channel == "__return__" else value if channel == "outcomes" else []
        )
    }
    return state, finished | {outcome["step"] for outcome in state.get("outcomes", ())}


@pytest.mark.parametrize(("mode", "plans"), [("sync", 8), ("sync", 20), ("async", 20)])
def test_killed_run_resumes_without_repeating_acknowledged_steps_or_mixing_results(
    mode: str, plans: int, tmp_path: Path
) -> None:
    seeds = range(plans)
    run_until_killed(["run:midway"], mode, tmp_path, *seeds)
    before = {seed: calls(tmp_path, seed) for seed in seeds}
    acknowledged = {seed: saved_state(tmp_path, seed) for seed in seeds}
    outcomes = resume(mode, tmp_path, *seeds)
    for seed in seeds:
        _, finished = acknowledged[seed]
        resumed = calls(tmp_path, seed)[len(before[seed]) :]
        assert {call["pid"] for call in resumed}.isdisjoint(call["pid"] for call in before[seed])
        repeated = {call["step"] for call in resumed}
        assert not repeated & finished, f"plan {seed}: acknowledged steps were called again"
        steps = outcomes[seed]
        size = len(dag_of(seed).seconds)
        assert 0 < len(finished) < size, f"plan {seed}: it was not killed midway"
        assert [step["step"] for step in steps] == [f"s{n}" for n in range(1, size + 1)]
        assert [step["status"] for step in steps] == ["done"] * size
        assert [step["rows"][0]["value"] for step in steps] == expected_values(dag_of(seed))
        assert repeated | {call["step"] for call in before[seed]} == {s["step"] for s in steps}
        assert len(resumed) == len(repeated), "a resumed run called a step twice"
        keys = {(call["step"], call["key"]) for call in before[seed] + resumed}
        assert len(keys) == size, f"plan {seed}: the call keys changed"


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_run_killed_several_times_ends_with_the_right_result_of_each_step(
    mode: str, tmp_path: Path
) -> None:
    seed = 104
    size = len(dag_of(seed).seconds)
    run_until_killed(["run:3", "resume:5", "resume:7"], mode, tmp_path, seed)
    _, finished = saved_state(tmp_path, seed)
    before = len(calls(tmp_path, seed))
    steps = resume(mode, tmp_path, seed)[seed]
    assert [step["rows"][0]["value"] for step in steps] == expected_values(dag_of(seed))
    assert not finished & {call["step"] for call in calls(tmp_path, seed)[before:]}
    assert len({call["pid"] for call in calls(tmp_path, seed)}) >= 3
    assert {call["step"] for call in calls(tmp_path, seed)} == {f"s{n + 1}" for n in range(size)}


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_step_keeps_its_call_key_when_killed_at_the_first_call(mode: str, tmp_path: Path) -> None:
    seeds = range(6)
    run_until_killed(["run:1"], mode, tmp_path, *seeds)
    started_seeds = [seed for seed in seeds if saved_state(tmp_path, seed)[0]]
    assert started_seeds, "no run had its input saved"
    resume(mode, tmp_path, *started_seeds)
    for seed in started_seeds:
        first = calls(tmp_path, seed)[0]
        step_calls = [call for call in calls(tmp_path, seed) if call["step"] == first["step"]]
        assert {call["key"] for call in step_calls} == {first["key"]}
