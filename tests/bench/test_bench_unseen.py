"""Tests of planning for unseen toolboxes, on the corpus that ships and on small public files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from casewright.bench import unseen
from casewright.bench.toolbox_planners import ToolboxPlanner
from casewright.bench.unseen import NEW_TOOLS, UnseenTrial, corpus_set, measure_unseen, public_sets
from casewright.errors import InputError
from casewright.planner import CasePlanner, Plan, PlanRequest, PlanResult, parse_plan, plan_store
from casewright.planner.fallback import FallbackPlanner
from casewright.serve.cli.commands import app
from casewright.stores import CaseStore
from tests.support.encoders import HashingEncoder
from tests.support.instruction_files import (
    function,
    leaderboard,
    seal_call,
    seal_items,
    seal_tool,
    write_lines,
)
from tests.support.shipped import validation_toolboxes
from tests.support.tiny_mistral import save_tiny

ENCODER = HashingEncoder(64)
BOXES = {box.toolbox.fingerprint(): box for box in validation_toolboxes()}
PLANS = {(q.query, str(q.record.context)): q.plan for box in BOXES.values() for q in box.queries}


def test_messages_that_are_plan_cases_are_not_measured() -> None:
    data_set = corpus_set("validation", 5, seed=0)
    assert set(data_set.plan_cases) == set(BOXES)
    measured_ids = {item.query.record.id for item in data_set.items}
    for key, box in BOXES.items():
        plan_case_ids = {query.record.id for query in data_set.plan_cases[key]}
        assert len(plan_case_ids) == 5
        assert plan_case_ids.isdisjoint(measured_ids)
        assert {query.record.id for query in box.queries} <= plan_case_ids | measured_ids
    fewer = corpus_set("validation", 3, seed=0).plan_cases
    assert all(list(data_set.plan_cases[key])[:3] == list(fewer[key]) for key in BOXES)


def test_corpus_set_refuses_so_many_plan_cases_that_no_message_remains() -> None:
    with pytest.raises(InputError, match="leaves no message to measure: the toolbox"):
        corpus_set("validation", 1000, seed=0)


class Stub:
    """A planner that plans by a given function and records the size of each batch."""

    name = "scripted"
    batch = 4

    def __init__(self, plans: Callable[[PlanRequest], Plan], sizes: list[int]) -> None:
        self._plans, self._sizes = plans, sizes

    def plan(self, request: PlanRequest) -> PlanResult:
        return PlanResult(self._plans(request), self.name, milliseconds=3)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        return self.plan(request)

    def plan_many(self, requests: Sequence[PlanRequest]) -> list[PlanResult]:
        self._sizes.append(len(requests))
        return [self.plan(request) for request in requests]


def test_toolbox_planner_plans_each_toolbox_in_one_batch_with_its_plan_cases() -> None:
    data_set = corpus_set("validation", 2, seed=0)
    requests = [item.request for item in data_set.items]
    sizes: list[int] = []
    opened: list[CaseStore] = []

    def open_planner(store: CaseStore) -> Stub:
        opened.append(store)
        return Stub(lambda request: parse_plan("s1 = no_evidence()"), sizes)

    with plan_store([], ENCODER) as empty:
        stores = {key: plan_store(cases, ENCODER) for key, cases in data_set.plan_cases.items()}
        planner = ToolboxPlanner("scripted", open_planner, stores, empty)
        assert planner.batch == 4
        assert len(planner.plan_many(requests)) == len(requests)
        assert opened == [empty, *stores.values()]
        assert len(sizes) == len(stores)
        # A toolbox without plan cases gets the planner of the empty store.
        del stores[requests[0].toolbox.fingerprint()]
        planner.plan(requests[0])
        assert opened[-1] is empty


def test_case_planner_reuses_the_plan_cases_of_each_toolbox() -> None:
    data_set = corpus_set("validation", 8, seed=0)
    with plan_store([], ENCODER) as empty:
        stores = {key: plan_store(cases, ENCODER) for key, cases in data_set.plan_cases.items()}
        planner = ToolboxPlanner("case", CasePlanner, stores, empty)
        for key, queries in data_set.plan_cases.items():
            query = queries[0]
            result = planner.plan(query.record.request(BOXES[key].toolbox))
            assert result.plan.tools == query.plan.tools


def gold(request: PlanRequest) -> Plan:
    return PLANS[request.question, str(request.context)]


def measure_planners(
    monkeypatch: pytest.MonkeyPatch, planners: Mapping[str, Any], **trial: Any
) -> dict[str, Any]:
    """Return the report of the bench on the given planners by name."""
    monkeypatch.setattr(
        unseen,
        "planner_factory",
        lambda name, _: planners.get(name, lambda store: FallbackPlanner()),
    )
    settings = {"split": "validation", "with_base_model": False, "limit": 24, **trial}
    return measure_unseen(UnseenTrial(list(planners), **settings)).to_json()


def find_row(report: Mapping[str, Any], planner: str, label: str = "all") -> dict[str, Any]:
    (row,) = (
        row
        for row in report["rows"]
        if row.get("class") == label and row["planner"] == planner and row["table"] == "corpus"
    )
    return dict(row)


def test_plan_with_an_argument_that_the_gold_plan_lacks_counts_as_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def extra(request: PlanRequest) -> Plan:
        plan = gold(request)
        step = replace(plan.steps[0], arguments=(*plan.steps[0].arguments, ("more", SURPLUS)))
        return Plan((step, *plan.steps[1:]))

    report = measure_planners(
        monkeypatch, {"right": lambda store: Stub(gold, []), "wrong": lambda store: Stub(extra, [])}
    )
    right, wrong = find_row(report, "right"), find_row(report, "wrong")
    assert (right["right tools"], right["whole plans"], right["invalid"]) == (1, 1, 0)
    assert 0.8 < right["whole plans low"] < right["whole plans high"] == 1
    assert (wrong["right tools"], wrong["whole plans"]) == (1, 0)
    # No tool of the corpus has the argument.
    assert wrong["invalid"] == 24
    assert right["ms"] == 3
    (difference,) = (
        row
        for row in report["rows"]
        if row["table"] == "differences"
        and row["planner"] == "wrong"
        and row["figure"] == "graph_arguments"
    )
    assert difference["difference"] == -1


class Unsure(Stub):
    """A planner that is certain of gold plans and unsure of its wrong plans for long questions."""

    def plan(self, request: PlanRequest) -> PlanResult:
        if len(request.question) < 60:
            return PlanResult(gold(request), self.name, milliseconds=1, confidence=1.0)
        wrong = Plan((*gold(request).steps, *gold(request).steps))
        return PlanResult(wrong, self.name, milliseconds=1, confidence=0.25, asks_back=True)


def test_report_compares_confidence_with_correctness(monkeypatch: pytest.MonkeyPatch) -> None:
    report = measure_planners(
        monkeypatch,
        {"doubting": lambda store: Unsure(gold, []), "silent": lambda store: Stub(gold, [])},
        limit=None,
    )
    figures = report["figures"]
    long_share = figures["asked back, share, doubting"]
    assert 0.2 < long_share < 0.9
    assert figures["of these wrong, share, doubting"] == 1
    # Confidence is 0.25 too high for long questions, except in the bin with both kinds.
    assert figures["calibration error, doubting"] == pytest.approx(0.25 * long_share, abs=0.05)
    assert not any("silent" in name for name in figures if "calibration" in name)
    rows = [row for row in report["rows"] if row["table"] == "confidence"]
    assert {row["planner"] for row in rows} == {"doubting"}
    shares = [row["whole plans"] for row in rows]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == pytest.approx(1 - long_share, abs=0.001)


SURPLUS = parse_plan("s1 = find(more=1)").steps[0].arguments[0][1]


def test_every_message_is_counted_in_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    report = measure_planners(monkeypatch, {"right": lambda store: Stub(gold, [])}, limit=None)
    counts = {row["class"]: row["messages"] for row in report["rows"] if "class" in row}
    classes = ("one look-up", "chain of look-ups", "several asks", "unanswerable")
    assert sum(counts[name] for name in classes) == counts["all"]
    assert counts["open page used"]
    assert counts["open page as decoy"]
    fallback = find_row(report, "fallback plan")
    assert fallback["messages"] == counts["all"]
    assert fallback["whole plans"] < 0.5


def test_unseen_command_measures_a_model_folder_and_its_controls(tmp_path: Path) -> None:
    name = f"local:{save_tiny(tmp_path / 'tiny')}"
    arguments = ["bench", "unseen", "--planner", name, "--no-base", "--split", "validation"]
    completed = CliRunner().invoke(app, [*arguments, "--limit", "1", "--cases", "4", "--json"])
    assert completed.exit_code == 0, completed.output
    report = json.loads(completed.stdout)
    assert report["settings"]["cases"] == 4
    row = find_row(report, name)
    assert row["messages"] == 1
    assert row["ms"] > 0
    assert (
        find_row(report, "parser")["messages"] == find_row(report, "fallback plan")["messages"] == 1
    )
    differing = {row["planner"] for row in report["rows"] if row["table"] == "differences"}
    assert differing == {"parser", "fallback plan"}


def test_unseen_command_prints_shares_with_their_intervals() -> None:
    command = "bench unseen --planner parser --no-base --split validation --limit 9"
    completed = CliRunner().invoke(app, command.split())
    assert completed.exit_code == 0, completed.output
    assert "corpus: 9 messages" in completed.stdout
    assert "difference from parser" in completed.stdout
    assert re.search(r"all +9 +0\.\d{3} \[0\.\d{3}, [01]\.\d{3}\]", completed.stdout)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a folder with both public sets, each with two test items."""
    seal = tmp_path / "sealtools"
    tools = [seal_tool(name, ["what"], [], what="str") for name in ("sow", "dig", "mow")]
    write_lines(seal / "tool.jsonl", tools)
    for file, messages in (
        ("dev-dev.jsonl", ["sow beans", "dig holes"]),
        ("test_out_domain-dev.jsonl", ["dig trenches", "mow lawns"]),
    ):
        items = [
            (message, [seal_call(message.split()[0], [], what=message.split()[1])])
            for message in messages
        ]
        seal_items(seal / file, items, [message.split()[0] for message in messages])
    folder = tmp_path / "bfcl"
    plant = [function("plant", ["what"], what="string")]
    leaderboard(folder, "multiple", [("plant roses", plant, [{"plant": {"what": ["roses"]}}])])
    leaderboard(folder, "irrelevance", [("who sang this", plant, None)])
    return tmp_path


def test_public_sets_contain_only_the_items_of_their_test_files(data: Path) -> None:
    seal, bfcl = public_sets(data)
    assert [item.query.query for item in seal.items] == ["dig trenches", "mow lawns"]
    # The tool of the first item occurs in the training file as well.
    assert [NEW_TOOLS in classes for classes in seal.classes] == [False, True]
    assert [classes[-1] for classes in bfcl.classes] == ["bfcl/multiple", "bfcl/irrelevance"]


def test_unseen_command_adds_public_sets_to_the_corpus(data: Path) -> None:
    command = "bench unseen --planner parser --no-base --split validation --limit 4 --json --data"
    completed = CliRunner().invoke(app, [*command.split(), str(data)])
    assert completed.exit_code == 0, completed.output
    report = json.loads(completed.stdout)
    message_counts = {
        row["table"]: row["messages"]
        for row in report["rows"]
        if row["planner"] == "parser" and row.get("class") == "all"
    }
    assert message_counts == {"corpus": 4, "sealtools": 2, "bfcl": 2}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--split training", "There is no split 'training' of unseen toolboxes"),
        ("--planner agent:local:x --no-base", "these cannot be called"),
        ("--planner case --planner case", "is given twice"),
        ("--planner nobody --no-base", "There is no planner 'nobody'"),
        ("--planner case --no-base --data nowhere", "nowhere"),
    ],
    ids=["split", "agent", "twice", "unknown", "data"],
)
def test_unseen_command_refuses_invalid_options(options: str, expected: str) -> None:
    completed = CliRunner().invoke(app, ["bench", "unseen", *options.split()])
    assert completed.exit_code != 0
    assert expected in " ".join(str(completed.exception or completed.output).split())
