from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.serve.helpers import Output, result, run

TABLET = 's1 = order_lookup(query="tablet")\ns2 = shipment_status(order_id=s1.order_id)\n'


def test_plan_prints_only_the_plan_to_stdout(home: Path) -> None:
    completed = run(home, "plan", "Where is my tablet?")
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, TABLET, "")


def test_plan_json_names_the_planner_and_its_time(home: Path) -> None:
    report = result(run(home, "plan", "Where is my tablet?", "--json"))
    assert report["plan"] == TABLET.rstrip("\n")
    assert report["planner"] == "case"
    assert report["attempts"] == 1
    assert report["milliseconds"] > 0
    assert report["error"] is report["fallback"] is None


def test_plan_takes_the_product_from_the_given_context(home: Path) -> None:
    context = json.dumps({"product_id": "P021"})
    report = result(run(home, "plan", "Do people like it?", "--context", context, "--json"))
    assert "product_id=context.product_id" in report["plan"]


@pytest.fixture(scope="module")
def refused_runs(home: Path) -> list[Output]:
    return [run(home, "plan"), run(home, "plan", "Where is it?", "--input", "queries.jsonl")]


def test_neither_or_both_of_question_and_input_are_refused(refused_runs: list[Output]) -> None:
    for completed in refused_runs:
        assert completed.returncode == 2
        assert completed.stderr == "error: Give either a question or --input FILE.\n"
        assert completed.stdout == ""
