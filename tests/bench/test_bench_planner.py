from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from casewright.domains.shopping.data import records
from tests.serve.helpers import Done, result, run

Bench = dict[str, Any]


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plots") / "planner.png"


@pytest.fixture(scope="module")
def done(home: Path, picture: Path) -> Done:
    return run(home, "bench", "planner", "--folds", "2", "--json", "--plot", picture)


@pytest.fixture(scope="module")
def report(done: Done) -> Bench:
    measured: Bench = result(done)
    return measured


def test_planner_bench_prints_one_object_with_its_five_parts(report: Bench) -> None:
    assert {"bench", "machine", "settings", "figures", "rows"} <= set(report)
    assert report["bench"] == "planner"
    assert report["machine"]["cores"] >= 1
    assert report["settings"]["folds"] == 2
    assert report["settings"]["queries"] == len(records("queries"))
    assert all(math.isfinite(value) for value in report["figures"].values())


def test_controls_lie_below_the_planner(report: Bench) -> None:
    figures = report["figures"]
    controls = {name: value for name, value in figures.items() if "control" in name}
    assert len(controls) == 2
    assert all(value < figures["tool_accuracy"] / 2 for value in controls.values())
    rows = {row["class"]: row for row in report["rows"]}
    for name in ("control: plans shuffled", "control: fallback plan"):
        assert rows[name]["arguments"] < rows["all"]["arguments"]
        assert rows[name]["f1"] < rows["all"]["f1"]


def test_rows_are_the_classes_and_count_every_query_once(report: Bench) -> None:
    rows = {row["class"]: row for row in report["rows"]}
    classes = {query["class"] for query in records("queries")}
    assert classes <= set(rows)
    assert sum(rows[name]["count"] for name in classes) == rows["all"]["count"] == 820


def test_figures_agree_with_the_rows(report: Bench) -> None:
    rows = {row["class"]: row for row in report["rows"]}
    weighted = sum(
        row["count"] * row["tools"]
        for name, row in rows.items()
        if name != "all" and not name.startswith("control")
    )
    assert report["figures"]["tool_accuracy"] == pytest.approx(weighted / 820, abs=1e-3)
    assert rows["all"]["tools"] == pytest.approx(weighted / 820, abs=1e-3)
    for row in rows.values():
        assert row["arguments"] <= row["tools"]


def test_planner_bench_draws_a_png(done: Done, picture: Path) -> None:
    assert done.returncode == 0
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert picture.stat().st_size > 5000
