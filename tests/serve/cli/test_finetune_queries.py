"""The commands that sample and annotate queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casewright.planner import read_annotated
from tests.serve.helpers import Done, new_home, one_line_error, result, run

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
POOL = [f"a {kind} {thing}" for kind in ("big", "red", "old") for thing in ("bed", "mug", "rug")]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_home(tmp_path_factory.mktemp("queries") / "home")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    (tmp_path / "initial.txt").write_text("a bed\na table lamp\n", encoding="utf-8")
    (tmp_path / "pool.json").write_text(json.dumps([*POOL, "A  BED"]), encoding="utf-8")
    return tmp_path


def sheet(folder: Path, *records: dict[str, Any]) -> Path:
    file = folder / "sheet.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return file


def sampled(home: Path, folder: Path, *more: str | Path) -> Done:
    given = ("--initial", folder / "initial.txt", "--pool", folder / "pool.json", *more)
    return run(home, "finetune", "sample", *given, "--output", folder / "out.jsonl")


def annotated(home: Path, folder: Path, source: Path, *more: str | Path) -> Done:
    tools = ("--toolbox", folder / "tools.json")
    output = ("--output", folder / "out.jsonl")
    return run(home, "finetune", "annotate", "--input", source, *output, *tools, *more)


def test_finetune_sample_writes_a_sheet_and_reports_coverage_of_each_method(
    home: Path, folder: Path
) -> None:
    told = result(sampled(home, folder, "--compare", "--json"))
    lines = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert {record["query"] for record in records} <= set(POOL)
    assert all((record["plan"], record["class"]) == ("", "") for record in records)
    assert (len(records), told["pool_read"], told["pool_distinct"]) == (2, 10, 9)
    by = {row["pool"]: row for row in told["rows"]}
    assert list(by) == ["initial", "dqs", "dqs_large", "facility_location", "random"]
    assert all(0 < row["coverage"] <= row["coverage_with_initial"] <= 1 for row in by.values())


def test_finetune_sample_prints_its_figures_as_a_table(home: Path, folder: Path) -> None:
    done = sampled(home, folder, "--method", "facility-location", "--size", "3")
    assert done.returncode == 0, done.stderr
    assert "facility_location" in done.stdout
    assert "10 queries in the pool, 9 different ones" in done.stdout


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--size", "10"), "10 queries cannot be sampled: the pool has 9"),
        (("--method", "best"), "best"),
        (("--domain", "shopping"), "either --initial FILE or --domain NAME"),
        (("--pool", "none.txt"), "none.txt cannot be read"),
    ],
    ids=["size", "method", "both", "file"],
)
def test_invalid_options_of_finetune_sample_print_one_line_and_write_nothing(
    home: Path, folder: Path, more: tuple[str, ...], why: str
) -> None:
    done = sampled(home, folder, *more)
    assert why in one_line_error(done)
    assert not (folder / "out.jsonl").exists()


def test_finetune_sample_does_not_overwrite_an_existing_sheet(home: Path, folder: Path) -> None:
    (folder / "out.jsonl").write_text("mine", encoding="utf-8")
    assert "perhaps filled in" in one_line_error(sampled(home, folder))
    assert (folder / "out.jsonl").read_text(encoding="utf-8") == "mine"


def test_finetune_annotate_writes_valid_queries_and_keeps_the_other_lines(
    home: Path, folder: Path
) -> None:
    source = sheet(
        folder,
        {"id": "1", "query": "rooms in Bremen", "plan": ROOM, "class": ""},
        {"id": "2", "query": "is it quiet", "plan": "s1 = room_facts(query=question)"},
        {"id": "3", "query": "rooms in Kiel", "plan": ""},
    )
    done = annotated(home, folder, source, "--json")
    assert done.returncode == 2
    assert done.stderr.startswith("error: 1 of 3 lines are wrong.")
    told = json.loads(done.stdout)
    assert (told["added"], told["wrong"], told["empty"]) == (1, 1, 1)
    assert told["problems"][0]["reason"] == "s1: room_facts needs the argument room_id."
    assert [str(query.plan) for query in read_annotated(folder / "out.jsonl")] == [ROOM]
    rest = Path(told["rest"]).read_text(encoding="utf-8").splitlines()
    assert rest == source.read_text(encoding="utf-8").splitlines()[1:]


def test_finetune_annotate_prints_problems_as_a_table(home: Path, folder: Path) -> None:
    done = annotated(home, folder, sheet(folder, {"id": "7", "query": "rooms in Kiel", "plan": ""}))
    assert done.returncode == 0, done.stderr
    assert "The plan is empty." in done.stdout


@pytest.mark.parametrize(
    ("more", "why"),
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
    home: Path, folder: Path, more: tuple[str, str], why: str
) -> None:
    source = sheet(folder, {"id": "1", "query": "rooms in Bremen", "plan": ROOM})
    name = more[1] if "." not in more[1] else str(folder / more[1])
    assert why in one_line_error(annotated(home, folder, source, more[0], name))
    assert source.read_text(encoding="utf-8").count("\n") == 1
