from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casewright.domains.shopping.tools import shopping_toolbox
from casewright.planner import QueryRecord, parse_plan
from casewright.stores import CaseStore
from tests.serve.helpers import Output, one_line_error, run
from tests.stores.helpers import note_schema
from tests.support.shipped import shop_queries

WEATHER = {
    "name": "weather_report",
    "parameters": {"place": "where"},
    "results": ["evidence"],
    "description": "The weather forecast of a place.",
    "example": {
        "query": "Will it rain in Wexmoor tomorrow?",
        "plan": 's1 = weather_report(place="Wexmoor")',
    },
}
VALID: dict[Any, dict[str, Any]] = {
    "a": {"query": "Where is my tablet?"},
    7: {"query": "How long do refunds take?"},
    "": {"query": "Do people like it?", "context": {"product_id": "P021", "page": "product"}},
    "extra": {"query": "Will it rain in Dunmere tomorrow?", "tools_extra": [WEATHER]},
    "removed": {"query": "Where is my tablet?", "tools_removed": ["shipment_status"]},
    "ünï 🙂": {"query": "¿Dónde está mi tableta? 🙂", "more": "ignored"},
}
#: An invalid line, the id in its answer, and a part of its error.
INVALID: list[tuple[bytes, Any, str]] = [
    (b'{"id": "broken", "query": "Where', None, "not JSON"),
    (b"{}", None, "query"),
    (b'{"id": "nul", "query": "a\\u0000b"}', "nul", "control characters"),
    (json.dumps({"id": "long", "query": "x" * 100_000}).encode(), "long", "100,000"),
    (b'{"id": "empty", "query": " "}', "empty", "empty"),
    (b'{"id": "typed", "query": 5}', "typed", "query"),
    (b"[1, 2]", None, "not a JSON object"),
    (b"null", None, "not a JSON object"),
    (b"\xff\xfe\xfd", None, "not JSON"),
    (b"[" * 100_000, None, "recursion"),
    (b'{"id": 1.5, "query": "hello"}', None, "id"),
    (b'{"id": ["x"], "query": "hello"}', None, "id"),
    (b'{"id": "context", "query": "hello", "context": []}', "context", "context"),
    (b'{"id": "nan", "query": "hello", "context": {"a": NaN}}', "nan", "context"),
    (b'{"id": "gone", "query": "hello", "tools_removed": ["x"]}', "gone", "tools_removed"),
    (b'{"id": "nameless", "query": "hello", "tools_extra": [{}]}', "nameless", "name"),
    (b'{"id": "lone", "query": "hi \\ud800"}', "lone", "Unicode"),
]


def read_lines(completed: Output) -> list[dict[str, Any]]:
    return [json.loads(line) for line in completed.stdout.splitlines()]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with valid records, and invalid records and blank lines between them."""
    valid_lines = [json.dumps({"id": name, **record}).encode() for name, record in VALID.items()]
    lines = [valid_lines[0], b"", *(line for line, _, _ in INVALID), b"  ", *valid_lines[1:]]
    file = tmp_path_factory.mktemp("queries") / "queries.jsonl"
    file.write_bytes(b"\n".join(lines) + b"\r\n")
    return file


@pytest.fixture(scope="module")
def completed(home: Path, source: Path) -> Output:
    return run(home, "plan", "--input", source, "--output", source.with_name("plans.jsonl"))


@pytest.fixture(scope="module")
def answers(completed: Output, source: Path) -> list[dict[str, Any]]:
    text = source.with_name("plans.jsonl").read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.removesuffix("\n").split("\n")]


def test_plan_file_has_one_line_per_record_in_order(answers: list[dict[str, Any]]) -> None:
    first, *others = VALID
    expected = [first, *(record_id for _, record_id, _ in INVALID), *others]
    assert [answer["id"] for answer in answers] == expected


def test_every_line_of_a_plan_file_has_exactly_the_expected_keys(
    answers: list[dict[str, Any]],
) -> None:
    keys = ["id", "plan", "milliseconds", "planner", "attempts", "error"]
    keys += ["confidence", "because", "asks_back", "alternatives"]
    assert all(list(answer) == keys for answer in answers)
    for answer in answers:
        assert (answer["confidence"] is None) == (answer["error"] is not None)
        assert 0 <= (answer["confidence"] or 0) <= 1
        assert answer["plan"] not in answer["alternatives"]
        assert all(parse_plan(plan) for plan in answer["alternatives"])


def test_plan_of_every_valid_record_is_valid_for_its_toolbox(answers: list[dict[str, Any]]) -> None:
    # The tools' declarations do not depend on the cases in the stores.
    with CaseStore(note_schema()) as store:
        names = ("products", "facts", "reviews", "orders", "help")
        toolbox = shopping_toolbox(dict.fromkeys(names, store))
    valid_answers = [answer for answer in answers if answer["error"] is None]
    assert len(valid_answers) == len(VALID)
    for answer in valid_answers:
        record = QueryRecord.read({"id": answer["id"], **VALID[answer["id"]]})
        record.request(toolbox).validate(parse_plan(answer["plan"]))
        assert answer["milliseconds"] > 0
        assert answer["attempts"] >= 1
        assert answer["planner"] == "case"


def test_extra_and_removed_tools_of_a_record_change_its_plan(answers: list[dict[str, Any]]) -> None:
    plans = {answer["id"]: answer["plan"] for answer in answers}
    assert plans["extra"].startswith("s1 = weather_report(place=")
    assert "shipment_status" in plans["a"]
    assert "shipment_status" not in plans["removed"]


def test_every_invalid_record_gets_an_error_and_an_empty_plan(
    answers: list[dict[str, Any]],
) -> None:
    for (line, record_id, message), answer in zip(INVALID, answers[1:], strict=False):
        assert message in answer["error"], (line[:60], answer)
        assert (answer["plan"], answer["id"], answer["attempts"]) == ("", record_id, 0)


def test_plan_ends_with_an_error_that_counts_the_invalid_records(completed: Output) -> None:
    message = one_line_error(completed)
    assert message.startswith(f"{len(INVALID)} of {len(INVALID) + len(VALID)} records")
    assert completed.stdout == ""


def test_valid_records_end_with_exit_code_0_and_plans_on_stdout(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "queries.jsonl"
    queries = shop_queries()[::161]
    records = [query.record.model_dump(include={"id", "query", "context"}) for query in queries]
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    completed = run(home, "plan", "--input", file)
    assert (completed.returncode, completed.stderr) == (0, "")
    answers = read_lines(completed)
    assert [answer["id"] for answer in answers] == [query.record.id for query in queries]
    # The queries are the planner's own cases, so most plans have the same tools.
    plans = [parse_plan(answer["plan"]) for answer in answers]
    matches = [plan.tools == query.plan.tools for plan, query in zip(plans, queries, strict=True)]
    assert sum(matches) >= 0.8 * len(matches), matches


@pytest.mark.parametrize(
    ("fault", "message"),
    [({"id": "2", "tools_extra": [{"name": "w"}, {"name": "w"}]}, "w"), ({"id": "\ud800"}, "id")],
    ids=["two tools of one name", "id that is no Unicode text"],
)
def test_records_after_an_invalid_record_are_planned(
    home: Path, tmp_path: Path, fault: dict[str, Any], message: str
) -> None:
    file = tmp_path / "queries.jsonl"
    records = [{"id": "1", "query": "hello"}, {"query": "hello", **fault}, {"query": "hello"}]
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    completed = run(home, "plan", "--input", file)
    answers = read_lines(completed)
    assert [answer["error"] is None for answer in answers] == [True, False, True], completed.stderr
    assert message in answers[1]["error"]
    assert one_line_error(completed).startswith("1 of 3 records")
