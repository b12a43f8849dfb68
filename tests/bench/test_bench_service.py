"""Tests of `casewright bench serve`: its sequential clients and its figures."""

from __future__ import annotations

import asyncio
from pathlib import Path

from casewright.bench.service import SERVICES, Load, measure_load
from tests.serve.helpers import built_home, result, run


def test_load_asks_with_the_given_number_of_clients_and_counts_errors() -> None:
    active = peak = 0
    questions: list[str] = []

    async def ask(question: str) -> float | None:
        nonlocal active, peak
        active += 1
        peak = max(peak, active)
        questions.append(question)
        await asyncio.sleep(0.01)
        active -= 1
        return None if question == "bad" else 4.0

    outcome = asyncio.run(measure_load(ask, ["a", "b", "bad", "c", "d", "e"], 3))
    assert questions == ["a", "b", "bad", "c", "d", "e"]
    assert peak == 3
    assert outcome.error_count == 1
    assert len(outcome.milliseconds) == 5
    assert outcome.percentile(50) >= 10
    assert outcome.outside_milliseconds >= 6


def test_load_calculates_rate_and_percentiles_from_answer_times() -> None:
    outcome = Load([10.0, 20.0, 30.0], 1.5, 0)
    assert outcome.per_second == 2.0
    assert outcome.percentile(50) == 20.0
    assert Load([], 1.0, 3).percentile(99) == 0.0
    assert Load([10.0, 20.0, 40.0], 1.5, 0, stages_ms=[9.0, 17.0, 30.0]).outside_milliseconds == 3.0
    assert Load([], 1.0, 3).outside_milliseconds == 0.0


def test_serve_bench_prints_every_service_with_ratios_and_memory(tmp_path: Path) -> None:
    plot = tmp_path / "serve.png"
    arguments = ("--questions", "32", "--requests", "40", "--plot", plot, "--json")
    report = result(run(built_home(), "bench", "serve", *arguments))
    assert [(row["way"], row["clients"]) for row in report["rows"]] == [
        (service, clients) for clients in (1, 8, 32) for service in ("bare graph", *SERVICES)
    ]
    for row in report["rows"]:
        assert 0 < row["outside_ms"] < row["p99_ms"]
    assert report["figures"]["errors_32_clients"] == 0
    for other in ("bare", "own_runs", "1_thread"):
        name = f"ratio_service_over_{other}_requests_per_second_32_clients"
        assert report["figures"][name] > 0
    assert report["figures"]["errors_in_40_requests"] == 0
    assert report["figures"]["service_memory_mb_after_40_requests"] > 50
    assert plot.stat().st_size > 1000
