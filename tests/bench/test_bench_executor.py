from __future__ import annotations

import random
import re
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from casewright.graph.random_plans import random_dag
from tests.serve.helpers import Output, result, run

Bench = dict[str, Any]


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plots") / "executor.svg"


@pytest.fixture(scope="module")
def completed(picture: Path) -> Output:
    return run(picture.parent, "bench", "executor", "--dags", "3", "--json", "--plot", picture)


@pytest.fixture(scope="module")
def report(completed: Output) -> Bench:
    document: Bench = result(completed)
    return document


def test_executor_bench_prints_one_json_object_with_five_parts(report: Bench) -> None:
    assert {"bench", "machine", "settings", "figures", "rows"} <= set(report)
    assert report["bench"] == "executor"
    assert report["settings"]["dags"] == 3
    assert {"langgraph", "qdrant-client"} <= set(report["machine"]["packages"])
    assert sum(row["plans"] for row in report["rows"]) == 3


def test_no_schedule_is_faster_than_the_critical_path(report: Bench) -> None:
    over_path = {name: v for name, v in report["figures"].items() if "over_critical_path" in name}
    assert len(over_path) == 4
    # 0.99 allows for the resolution of the clock: steps sleep at least as long as declared.
    assert all(0.99 < value < 5 for value in over_path.values()), over_path


def test_executor_bench_writes_an_svg_plot_when_the_file_name_ends_in_svg(
    completed: Output, picture: Path
) -> None:
    assert completed.returncode == 0
    assert "<svg" in picture.read_text(encoding="utf-8")


def test_executor_bench_draws_its_plans_from_the_seed(report: Bench) -> None:
    rng = random.Random(report["settings"]["seed"])
    dags = [random_dag(rng) for _ in range(3)]
    for row in report["rows"]:
        low, high = map(int, row["steps"].split("–"))
        paths = [dag.critical_path() for dag in dags if low <= len(dag.seconds) <= high]
        assert row["plans"] == len(paths)
        assert row["path_ms"] == pytest.approx(median(paths) * 1000)


def test_executor_bench_without_json_prints_a_table_with_the_commit(
    tmp_path: Path, report: Bench
) -> None:
    completed = run(tmp_path, "bench", "executor", "--dags", "1")
    assert completed.returncode == 0
    commit = report["machine"]["commit"]
    if commit is None:
        # The package does not run from a checkout.
        assert "Printed by" not in completed.stdout
    else:
        assert re.fullmatch(r"[0-9a-f]{7,}\+?", commit)
        assert f"Printed by {commit}." in completed.stdout
    assert "ratio_casewright_over_critical_path_p50" in completed.stdout
    assert "send_waves" in completed.stdout
    assert "{" not in completed.stdout
