"""Tests of the latency bench: a plan in one call against the step-by-step agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from casewright.bench.latency import measure_latency
from casewright.bench.models import GenerationTrial, ModelChoice
from casewright.bench.report import Report
from casewright.serve.cli.bench.report import show

Bench = dict[str, Any]
THINKING = "step agent with thoughts"
SYSTEMS = ("one call", "step agent", "step agent, stateless", THINKING)


@pytest.fixture(scope="module")
def measured(home: Path) -> Iterator[Report]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CASEWRIGHT_HOME", str(home))
        yield measure_latency(GenerationTrial(model=ModelChoice(size="tiny"), plans=1))


@pytest.fixture(scope="module")
def report(measured: Report) -> Bench:
    document: Bench = json.loads(json.dumps(measured.to_json(), allow_nan=False))
    return document


def test_agent_calls_the_model_once_more_than_the_plan_has_steps(report: Bench) -> None:
    rows = report["rows"]
    assert [(row["steps"], row["system"]) for row in rows] == [
        (steps, system) for steps in (1, 2, 3, 4) for system in SYSTEMS
    ]
    for row in rows:
        assert row["model_calls"] == (1 if row["system"] == "one call" else row["steps"] + 1)


def test_every_system_writes_the_scripted_plan(report: Bench) -> None:
    figures = report["figures"]
    shares = {name: value for name, value in figures.items() if name.startswith("scripted_")}
    assert len(shares) == 4
    assert set(shares.values()) == {1}


def test_agent_reads_more_tokens_than_one_call_and_most_when_stateless(report: Bench) -> None:
    tokens = {(row["steps"], row["system"]): row["prompt_tokens"] for row in report["rows"]}
    for steps in (1, 2, 3, 4):
        one_call, cached, stateless, _ = (tokens[steps, system] for system in SYSTEMS)
        assert one_call < cached < stateless
    assert tokens[1, "step agent"] < tokens[4, "step agent"]


def test_agent_with_thoughts_writes_more_tokens_than_without(report: Bench) -> None:
    tokens = {(row["steps"], row["system"]): row["written_tokens"] for row in report["rows"]}
    for steps in (1, 2, 3, 4):
        # A thought has at least eight characters, and comes before each step and the end.
        assert tokens[steps, THINKING] > tokens[steps, "step agent"] + steps


def test_report_contains_ratios_and_the_memory_limit(report: Bench) -> None:
    assert report["bench"] == "latency"
    for name in ("step_agent", "stateless_agent", "thinking_agent"):
        for end in ("1_steps", "4_steps", "all"):
            assert report["figures"][f"ratio_{name}_over_one_call_model_ms_{end}"] > 0
    for row in report["rows"]:
        assert 0 < row["memory_limit_ms"] < row["model_ms_p50"] <= row["total_ms_p50"]


def test_latency_report_is_plotted_and_printed(
    measured: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(measured, as_json=False, plot=tmp_path / "l.svg")
    svg = (tmp_path / "l.svg").read_text(encoding="utf-8")
    assert "<svg" in svg
    assert "over_one_call" in capsys.readouterr().out
