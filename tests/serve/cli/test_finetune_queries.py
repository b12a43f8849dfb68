"""The commands that sample and annotate queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casewright.planner import read_annotated
from tests.serve.helpers import Output, new_home, one_line_error, result, run

TOOLS = [
    {
        "name": "find_room",
        "description": "Finds free rooms.",
        "parameters": {"town": {"description": "Where.", "sources": ["span"]}},
        "results": ["room_id"],
        "example": {"query": "a room in Kiel", "plan": 's1 = find_room(town="Kiel")'},
    },
    {
        "name": "room_facts",
        "description": "A fact about a room.",
        "parameters": {"room_id": "The room.", "query": {"sources": ["question"]}},
    },
]
ROOM = 's1 = find_room(town="Bremen")'
POOL = [f"a {kind} {item}" for kind in ("big", "red", "old") for item in ("bed", "mug", "rug")]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_home(tmp_path_factory.mktemp("queries") / "home")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    (tmp_path / "initial.txt").write_text("a bed\na table lamp\n", encoding="utf-8")
    (tmp_path / "pool.json").write_text(json.dumps([*POOL, "A  BED"]), encoding="utf-8")
    return tmp_path


def write_sheet(folder: Path, *records: dict[str, Any]) -> Path:
    file = folder / "sheet.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file


def run_sample(home: Path, folder: Path, *arguments: str | Path) -> Output:
    options = ("--initial", folder / "initial.txt", "--pool", folder / "pool.json", *arguments)
    return run(home, "finetune", "sample", *options, "--output", folder / "out.jsonl")


def run_annotate(home: Path, folder: Path, source: Path, *arguments: str | Path) -> Output:
    options = ("--toolbox", folder / "tools.json", "--output", folder / "out.jsonl")
    return run(home, "finetune", "annotate", "--input", source, *options, *arguments)


def test_finetune_sample_writes_a_sheet_and_reports_coverage_of_each_method(
    home: Path, folder: Path
) -> None:
    report = result(run_sample(home, folder, "--compare", "--json"))
    lines = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert {record["query"] for record in records} <= set(POOL)
    assert all((record["plan"], record["class"]) == ("", "") for record in records)
    assert (len(records), report["pool_read"], report["pool_distinct"]) == (2, 10, 9)
    rows = {row["pool"]: row for row in report["rows"]}
    assert list(rows) == ["initial", "dqs", "dqs_large", "facility_location", "random"]
    assert all(0 < row["coverage"] <= row["coverage_with_initial"] <= 1 for row in rows.values())


def test_finetune_sample_prints_its_figures_as_a_table(home: Path, folder: Path) -> None:
    completed = run_sample(home, folder, "--method", "facility-location", "--size", "3")
    assert completed.returncode == 0, completed.stderr
    assert "facility_location" in completed.stdout
    assert "10 queries in the pool, 9 different ones" in completed.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--size", "10"), "10 queries cannot be sampled: the pool has 9"),
        (("--method", "best"), "best"),
        (("--domain", "shopping"), "either --initial FILE or --domain NAME"),
        (("--pool", "none.txt"), "none.txt cannot be read"),
    ],
    ids=["size", "method", "both", "file"],
)
def test_invalid_options_of_finetune_sample_print_one_line_and_write_nothing(
    home: Path, folder: Path, options: tuple[str, ...], message: str
) -> None:
    completed = run_sample(home, folder, *options)
    assert message in one_line_error(completed)
    assert not (folder / "out.jsonl").exists()


def test_finetune_sample_does_not_overwrite_an_existing_sheet(home: Path, folder: Path) -> None:
    (folder / "out.jsonl").write_text("mine", encoding="utf-8")
    assert "perhaps filled in" in one_line_error(run_sample(home, folder))
    assert (folder / "out.jsonl").read_text(encoding="utf-8") == "mine"


def test_finetune_annotate_writes_valid_queries_and_keeps_the_other_lines(
    home: Path, folder: Path
) -> None:
    source = write_sheet(
        folder,
        {"id": "1", "query": "rooms in Bremen", "plan": ROOM, "class": ""},
        {"id": "2", "query": "is it quiet", "plan": "s1 = room_facts(query=question)"},
        {"id": "3", "query": "rooms in Kiel", "plan": ""},
    )
    completed = run_annotate(home, folder, source, "--json")
    assert completed.returncode == 2
    assert completed.stderr.startswith("error: 1 of 3 lines are wrong.")
    report = json.loads(completed.stdout)
    assert (report["added"], report["wrong"], report["empty"]) == (1, 1, 1)
    assert report["problems"][0]["reason"] == "s1: room_facts needs the argument room_id."
    assert [str(query.plan) for query in read_annotated(folder / "out.jsonl")] == [ROOM]
    rest = Path(report["rest"]).read_text(encoding="utf-8").splitlines()
    assert rest == source.read_text(encoding="utf-8").splitlines()[1:]


def test_finetune_annotate_prints_problems_as_a_table(home: Path, folder: Path) -> None:
    sheet = write_sheet(folder, {"id": "7", "query": "rooms in Kiel", "plan": ""})
    completed = run_annotate(home, folder, sheet)
    assert completed.returncode == 0, completed.stderr
    assert "The plan is empty." in completed.stdout


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--domain", "shopping"), "either --domain NAME or --toolbox FILE"),
        (("--rest", "tools.json"), "exists already"),
        (("--output", "sheet.jsonl"), "is read by this command"),
        (("--input", "none.jsonl"), "cannot be read"),
        (("--queries", "none.jsonl"), "cannot be read"),
    ],
    ids=["both", "rest", "output", "input", "queries"],
)
def test_invalid_options_of_finetune_annotate_print_an_error_of_one_line(
    home: Path, folder: Path, option: tuple[str, str], message: str
) -> None:
    source = write_sheet(folder, {"id": "1", "query": "rooms in Bremen", "plan": ROOM})
    value = option[1] if "." not in option[1] else str(folder / option[1])
    assert message in one_line_error(run_annotate(home, folder, source, option[0], value))
    assert source.read_text(encoding="utf-8").count("\n") == 1
