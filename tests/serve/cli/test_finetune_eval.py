"""`casewright finetune eval`, from its options to its tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from casewright import domains
from casewright.domains import find_domain
from tests.finetune.evaluating import FACT, FIND, NOTHING
from tests.serve.helpers import Output, new_home, one_line_error, result, run
from tests.support.tiny_mistral import save_tiny

TOOLS = [
    {"name": "find", "parameters": {"query": "What."}, "results": ["id"], "description": "Finds."},
    {
        "name": "fact",
        "parameters": {"of": "Whose.", "query": "What."},
        "results": ["text"],
        "description": "Tells.",
    },
]
QUERIES = [
    ("do you sell a lamp", FIND, "find"),
    ("how bright is a lamp", FACT, "fact"),
    ("hello there", NOTHING, "no_evidence"),
]


def write_queries(file: Path, rows: list[tuple[str, str, str]]) -> Path:
    lines = [
        json.dumps({"id": number, "query": query, "plan": plan, "class": label})
        for number, (query, plan, label) in enumerate(rows)
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("eval")
    (folder / "tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    write_queries(folder / "asked.jsonl", QUERIES)
    cases = [(query.replace("lamp", "desk"), plan, label) for query, plan, label in QUERIES[:2]]
    write_queries(folder / "cases.jsonl", [*cases, QUERIES[2]])
    new_home(folder / "home")
    return folder


def evaluate(folder: Path, *arguments: str | Path) -> Output:
    defaults = ("--toolbox", folder / "tools.json", "--input", folder / "asked.jsonl")
    return run(folder / "home", "finetune", "eval", *defaults, *arguments)


def test_finetune_eval_prints_planners_with_their_controls_and_differences(folder: Path) -> None:
    options = ("--cases", folder / "cases.jsonl", "--removal", "--controls")
    completed = evaluate(folder, "--planner", "classifiers", *options)
    assert completed.returncode == 0, completed.stderr
    assert "know the plans of 1 of the 3 questions" in completed.stderr
    assert "gold plans shuffled" in completed.stdout
    assert "by construction" in completed.stdout
    assert "Difference from classifiers" in completed.stdout


def test_model_plans_without_its_grammar_when_a_tool_is_removed(folder: Path) -> None:
    name = f"local:{save_tiny(folder / 'tiny')}"
    options = ("--planner", name, "--limit", "1", "--json")
    report: dict[str, Any] = result(evaluate(folder, *options, "--removal", "--planner", "parser"))
    assert set(report) >= {"settings", "machine", "figures", "rows", "differences", "notes"}
    figures = report["figures"][name]
    # With random weights, the model writes a tool's name only if the grammar forces it.
    assert figures["only_provided"]["value"] == 0
    assert figures["only_provided"]["count"] == 1
    assert figures["hallucinated"] == {**figures["hallucinated"], "note": "by construction"}
    assert figures["input_tokens"]["value"] > 100
    unconstrained = result(evaluate(folder, *options, "--no-grammar"))
    assert unconstrained["figures"][name]["invalid"]["value"] == 1
    assert "note" not in unconstrained["figures"][name]["hallucinated"]
    assert unconstrained["settings"]["grammar"] is False


def test_finetune_eval_warns_of_missing_plan_cases_and_unknown_classes(folder: Path) -> None:
    file = write_queries(folder / "named.jsonl", [("do you sell a lamp", FIND, "sales")])
    warnings = evaluate(folder, "--planner", "parser", "--input", file).stderr
    assert "no plan cases for these" in warnings
    assert "No wrong plan is counted in the classes sales" in warnings


def test_finetune_eval_uses_the_measuring_queries_of_the_domain(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = find_domain("shopping")
    # Encoding all plan cases of the shop would take a minute.
    small_shop = replace(shop, queries=lambda: shop.queries()[::40])
    monkeypatch.setattr(domains, "find_domain", lambda name: small_shop)
    completed = run(home, "finetune", "eval", "--limit", "5", "--seed", "1", "--json")
    report = result(completed)
    assert report["settings"] == {
        **report["settings"],
        "domain": "shopping",
        "queries": "measuring",
        "items": 5,
        "planners": ["case"],
    }
    assert report["figures"]["case"]["tools"]["value"] >= 0.6
    # Plan cases that are not in the cache are encoded first.
    assert all(line.startswith("Adding cases") for line in completed.stderr.splitlines())


def test_finetune_eval_of_a_public_set_reports_which_records_convert(folder: Path) -> None:
    specification = [
        {"name": "a", "parameters": {"x": {"type": "string"}}, "output_parameters": {}}
    ]
    records = [
        {"id": "one", "input": "go", "output": [{"name": "a", "arguments": {"x": "y"}}]},
        {"id": "two", "input": "go", "output": [{"name": "b", "arguments": {}}]},
    ]
    data = folder / "nestful"
    data.mkdir()
    (data / "sgd-spec.json").write_text(json.dumps(specification), encoding="utf-8")
    (data / "sgd-dev.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    options = ("--set", "nestful", "--data", data, "--json")
    completed = run(folder / "home", "finetune", "eval", *options)
    conversion = result(completed)["conversion"]
    assert conversion["converted"] == 1
    assert conversion["refused_ids"] == {"a tool that is not in the specification": ["two"]}
    assert "nestful: 1 of 2 records convert" in completed.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--planner", "oracle"], "There is no planner 'oracle'"),
        (["--planner", "case", "--planner", "case"], "given twice"),
        (["--planner", "case", "--adapter", "x"], "Leave --adapter"),
        (["--planner", "case", "--no-grammar"], "--no-grammar"),
        (["--planner", "case", "--examples", "2"], "Leave --examples out"),
        (["--planner", "local:nowhere"], "nowhere"),
        (["--planner", "agent:local:nowhere"], "An agent calls tools"),
        (["--planner", "classifiers"], "--cases FILE"),
        (["--queries", "all"], "Leave --queries out"),
        (["--set", "nestful"], "Leave --input out"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[-1],
)
def test_invalid_options_of_finetune_eval_print_an_error_of_one_line(
    folder: Path, arguments: list[str], message: str
) -> None:
    assert message in one_line_error(evaluate(folder, *arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--queries", "some"], "--queries are measuring or all"),
        (["--domain", "code"], "has no measuring queries"),
        (["--set", "bench"], "Sets are: nestful, tau2"),
        (["--set", "tau2"], "--data DIR"),
        (["--data", "x"], "Leave --data out"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[-1],
)
def test_missing_query_sets_of_finetune_eval_print_an_error_of_one_line(
    home: Path, arguments: list[str], message: str
) -> None:
    assert message in one_line_error(run(home, "finetune", "eval", *arguments))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"plan": "s1 = sell()"}, "Query 2 (id b), its gold plan: s1: There is no tool"),
        ({"tools_removed": ["find"]}, "Query 2 (id b), its gold plan: s1"),
        ({"query": "a\0b"}, "Query 2 (id b): The question holds control characters"),
    ],
    ids=["unknown tool", "removed tool", "control character"],
)
def test_finetune_eval_names_the_query_whose_gold_plan_or_text_is_invalid(
    folder: Path, changes: dict[str, Any], message: str
) -> None:
    query = {"id": "a", "query": "a lamp", "plan": FIND}
    file = folder / "bad.jsonl"
    file.write_text(f"{json.dumps(query)}\n{json.dumps({**query, 'id': 'b', **changes})}")
    error = one_line_error(evaluate(folder, "--input", file))
    assert "bad.jsonl: " in error
    assert message in error
