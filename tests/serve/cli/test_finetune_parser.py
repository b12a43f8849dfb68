"""`casewright finetune parser`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from casewright.planner import PlanRequest
from casewright.planner.parser_planner import ParserPlanner
from tests.planner.helpers import SHOP
from tests.serve.helpers import new_home, one_line_error, run


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_finetune_parser_trains_measures_and_writes_a_plan_parser(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home")
    completed = run(home, "finetune", "parser", "--output", "out", "--minutes", "0.001", "--json")
    assert completed.returncode == 0
    report = json.loads(completed.stdout)
    assert report["folder"] == "out"
    assert report["whole plans, 5 cases"] <= report["right tools, 5 cases"]
    card = json.loads((home / "out" / "parser.json").read_text(encoding="utf-8"))
    assert card["training"]["minutes"] == 0.001
    result = ParserPlanner(None, home / "out").plan(PlanRequest("do you sell tents", SHOP))
    assert result.fallback == ""


def test_finetune_parser_refuses_to_start_from_a_folder_without_a_parser(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home")
    completed = run(home, "finetune", "parser", "--output", "out", "--from", "nothing")
    assert "nothing holds no plan parser" in one_line_error(completed)
