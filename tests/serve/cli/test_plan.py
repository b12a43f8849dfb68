from __future__ import annotations

import json
from pathlib import Path

import pytest

from casewright.planner import parse_plan
from tests.serve.helpers import Done, result, run

TABLET = 's1 = order_lookup(query="tablet")\ns2 = shipment_status(order_id=s1.order_id)\n'


def test_plan_prints_only_the_plan_to_stdout(home: Path) -> None:
    done = run(home, "plan", "Where is my tablet?")
    assert (done.returncode, done.stdout, done.stderr) == (0, TABLET, "")


def test_plan_json_names_the_planner_and_its_time(home: Path) -> None:
    planned = result(run(home, "plan", "Where is my tablet?", "--json"))
    assert planned["plan"] == TABLET.rstrip("\n")
    assert len(parse_plan(planned["plan"]).steps) == 2
    assert planned["planner"] == "case"
    assert planned["attempts"] == 1
    assert planned["milliseconds"] > 0
    assert planned["error"] is planned["fallback"] is None


def test_plan_takes_the_product_from_the_given_context(home: Path) -> None:
    page = json.dumps({"product_id": "P021"})
    planned = result(run(home, "plan", "Do people like it?", "--context", page, "--json"))
    assert "product_id=context.product_id" in planned["plan"]


@pytest.fixture(scope="module")
def refused_runs(home: Path) -> list[Done]:
    return [run(home, "plan"), run(home, "plan", "Where is it?", "--input", "queries.jsonl")]


def test_neither_or_both_of_question_and_input_are_refused(refused_runs: list[Done]) -> None:
    for done in refused_runs:
        assert done.returncode == 2
        assert done.stderr == "error: Give either a question or --input FILE.\n"
        assert done.stdout == ""
