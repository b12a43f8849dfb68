"""Tests of planning for own tools and for toolboxes of the corpus, by number of plan cases."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from casewright.bench import own_tools
from casewright.bench.own_tools import OwnToolsTrial, measure_own_tools, own_folder, stratified
from casewright.planner import CasePlanner, parse_plan
from casewright.planner.fallback import FallbackPlanner
from casewright.serve.cli.commands import app
from casewright.stores import CaseStore
from tests.support.encoders import HashingEncoder

TOOLS = """
from casewright.tools import Toolbox, tool_from_function

def find_machine(query: str) -> list[dict]:
    "Finds a machine."
def read_sensor(machine_id: str) -> str:
    "The temperature of a machine."

def toolbox():
    found = tool_from_function(find_machine, results=("machine_id",))
    return Toolbox([found, tool_from_function(read_sensor)])
"""
HEAT = 's1 = find_machine(query="{0}")\ns2 = read_sensor(machine_id=s1.machine_id)'
PLACE = 's1 = find_machine(query="{0}")'


def jsonl(plans: dict[str, str]) -> str:
    return "".join(json.dumps({"id": q, "query": q, "plan": p}) + "\n" for q, p in plans.items())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a folder: six messages on heat and two on places to learn from, one each to test."""
    (tmp_path / "tools.py").write_text(textwrap.dedent(TOOLS), encoding="utf-8")
    names = ("mill", "lathe", "drill", "saw", "press", "crane")
    learn = {f"how warm is the {name}": HEAT.format(name) for name in names}
    learn |= {f"where does the {name} stand": PLACE.format(name) for name in names[:2]}
    (tmp_path / "learn.jsonl").write_text(jsonl(learn), encoding="utf-8")
    test = {"how warm is the oven": HEAT.format("oven"), "where is the oven": PLACE.format("oven")}
    (tmp_path / "test.jsonl").write_text(jsonl(test), encoding="utf-8")
    return tmp_path


def test_stratified_draw_keeps_class_shares_and_begins_with_each_smaller_draw(data: Path) -> None:
    learn = own_folder(data).learn
    for seed in range(5):
        sample = stratified(learn, 4, seed)
        assert Counter(query.label for query in sample) == {"read_sensor": 3, "find_machine": 1}
        assert stratified(learn, 2, seed) == sample[:2]
    assert len({tuple(q.query for q in stratified(learn, 4, seed)) for seed in range(5)}) > 1
    assert len(stratified(learn, 100, 0)) == len(learn)


def test_planner_of_each_row_has_the_stated_number_of_plan_cases(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_counts: list[int] = []

    def make(store: CaseStore) -> CasePlanner:
        store_counts.append(store.count())
        return CasePlanner(store)

    controls = {"fallback plan": lambda store: FallbackPlanner()}
    monkeypatch.setattr(
        own_tools.toolbox_planners, "planner_factory", lambda name, _: controls.get(name, make)
    )
    trial = OwnToolsTrial(["parser"], data, case_counts=(0, 4, 8, 60), seeds=2, split=None)
    rows = measure_own_tools(trial, HashingEncoder(64)).rows
    measured_rows = [(row["planner"], row["cases"], row["draws"], row["messages"]) for row in rows]
    # Every draw of all eight cases is the same, and there are no sixty cases.
    expected = [*(("parser", *row) for row in ((0, 1, 2), (4, 2, 4), (8, 1, 2)))]
    expected.append(("fallback plan", 0, 1, 2))
    assert measured_rows == expected
    # The empty stores stand for other toolboxes.
    assert [count for count in store_counts if count] == [4, 4, 8]


def test_question_instead_of_a_literal_or_a_surplus_argument_counts_as_wrong(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure_plan(plan_text: str) -> Any:
        (data / "test.jsonl").write_text(jsonl({"where is the oven": PLACE.format("oven")}))
        planner = FallbackPlanner()
        monkeypatch.setattr(
            "casewright.planner.fallback.fallback_plan", lambda request: parse_plan(plan_text)
        )
        monkeypatch.setattr(
            own_tools.toolbox_planners, "planner_factory", lambda name, _: lambda store: planner
        )
        trial = OwnToolsTrial(["parser"], data, case_counts=(0,), split=None)
        return measure_own_tools(trial, HashingEncoder(64)).rows[0]

    for plan, share in (
        (PLACE.format("oven"), 1.0),
        ("s1 = find_machine(query=question)", 0.0),
        ('s1 = find_machine(query="oven", more=1)', 0.0),
    ):
        row = measure_plan(plan)
        assert (row["right tools"], row["whole plans"]) == (1.0, share)


def test_own_tools_command_measures_a_folder_and_the_corpus(data: Path) -> None:
    args = ["bench", "own-tools", "--data", str(data), "--cases", "0,5", "--seeds", "1"]
    completed = CliRunner().invoke(app, [*args, "--split", "validation", "--limit", "3", "--json"])
    assert completed.exit_code == 0, completed.output
    rows = json.loads(completed.stdout)["rows"]
    assert {row["table"] for row in rows} == {data.name, "validation"}
    assert {row["cases"] for row in rows if row["planner"] == "parser"} == {0, 5}
    text_run = CliRunner().invoke(app, [*args, "--no-corpus"])
    assert f"{data.name}, by number of annotated messages" in text_run.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cases", "some"], "is not a list of numbers"),
        (["--no-corpus"], "No messages are given"),
        (["--data", "nowhere"], "there is no such file"),
        (["--split", "training"], "no split 'training'"),
    ],
    ids=["cases", "nothing", "folder", "split"],
)
def test_own_tools_command_refuses_invalid_options(options: list[str], message: str) -> None:
    completed = CliRunner().invoke(app, ["bench", "own-tools", *options])
    assert completed.exit_code != 0
    assert message in str(completed.exception or completed.output)
