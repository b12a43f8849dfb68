"""A filled-in sheet becomes annotated queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.finetune.queries.annotation import (
    AnnotationReport,
    annotate,
    rest_file,
    sheet_lines,
    sheet_record,
)
from casewright.finetune.queries.query_files import QueryFile, write_new
from casewright.planner import read_annotated
from tests.planner.helpers import DESK_PLAN, OWN_PLAN, PAGE_PLAN, SHOP

LAMP = 's1 = find(query="a lamp")'


def record(number: int, query: str, plan: str = "", **fields: Any) -> dict[str, Any]:
    return {"id": f"n{number}", "query": query, "context": {}, "plan": plan, "class": "", **fields}


def write_sheet(folder: Path, *records: dict[str, Any] | str) -> Path:
    file = folder / "sheet.jsonl"
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in records]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def annotate_sheet(source: Path, **settings: Any) -> tuple[AnnotationReport, Path]:
    output = source.with_name("out.jsonl")
    return annotate(sheet_lines(source), QueryFile(output), SHOP, **settings), output


def test_valid_sheet_lines_become_annotated_queries(tmp_path: Path) -> None:
    source = write_sheet(
        tmp_path,
        record(1, "I want a lamp", 's1=find( query = "a lamp" )'),
        record(2, "is it heavy", PAGE_PLAN, context={"product_id": "p2"}, note="mine"),
        record(3, "how old is my tent", OWN_PLAN.format("tent"), **{"class": "multi_step"}),
    )
    report, output = annotate_sheet(source)
    assert (report.added_count, report.problems, report.rest) == (3, [], [])
    expected = [(LAMP, "find"), (PAGE_PLAN, "fact"), (OWN_PLAN.format("tent"), "multi_step")]
    assert [(str(q.plan), q.label) for q in read_annotated(output)] == expected
    assert json.loads(output.read_text(encoding="utf-8").splitlines()[1])["note"] == "mine"


@pytest.mark.parametrize(
    ("line", "reason", "remedy"),
    [
        (record(1, "a lamp", "find a lamp"), "s1: The step is called find", "Call it s1."),
        (record(1, "a lamp", "s1 = buy()"), "s1: There is no tool buy.", "Use one of find"),
        (
            record(1, "x", PAGE_PLAN),
            "s1: The context of this request has no product_id.",
            "It is empty",
        ),
        (record(1, "x", 's1 = own(query="y")'), "is no run of adjacent words", "Copy whole words"),
        (record(1, "a lamp", LAMP, **{"class": "lamps"}), "no class 'lamps'", "Write one of desk"),
        (record(1, "a lamp", LAMP, context=[]), "context: ", "Correct the record."),
        (record(1, "a lamp", LAMP, tools_removed=["find"]), "There is no tool find", "Use one of"),
        ({"id": 1, "query": "a lamp", "plan": 3}, "The plan is int, not text.", "Write it as one"),
        ({"id": 1, "plan": LAMP}, "query: Field required", "Correct"),
        ("[]", "The record is a list, not a JSON object.", "Correct"),
        ("null", "The record is a NoneType, not a JSON object.", "Correct the record."),
        ('{"id": 1,', "The line is no JSON", "Correct it."),
        (record(1, "  ", LAMP), "The question is empty.", "Ask something."),
    ],
    ids=lambda value: None if isinstance(value, str) else "bad",
)
def test_invalid_sheet_line_is_reported_with_reason_and_remedy_and_kept(
    line: Any, reason: str, remedy: str, tmp_path: Path
) -> None:
    source = write_sheet(tmp_path, record(0, "a lamp please", LAMP), line)
    report, output = annotate_sheet(source)
    (problem,) = report.problems
    assert (problem.line, problem.empty, report.wrong_count) == (2, False, 1)
    assert reason in problem.reason
    assert ".." not in problem.reason
    assert problem.mend.startswith(remedy)
    assert report.rest == source.read_text(encoding="utf-8").splitlines()[1:]
    assert len(read_annotated(output)) == 1


def test_sheet_accepts_a_class_of_the_existing_queries(tmp_path: Path) -> None:
    source = write_sheet(tmp_path, record(1, "a lamp", LAMP, **{"class": "lamps"}))
    report, output = annotate_sheet(source, classes={"lamps"})
    assert report.added_count == 1
    assert read_annotated(output)[0].label == "lamps"


def test_extra_tools_of_a_sheet_line_apply_to_that_line_only(tmp_path: Path) -> None:
    extra = {"name": "weather", "parameters": {"town": "Where."}, "results": ["evidence"]}
    plan = 's1 = weather(town="Kiel")'
    source = write_sheet(
        tmp_path,
        record(1, "weather in Kiel", plan, tools_extra=[extra]),
        record(2, "weather in Kiel", plan),
    )
    report, output = annotate_sheet(source)
    assert [problem.id for problem in report.problems] == ["n2"]
    assert read_annotated(output)[0].label == "weather"


def test_rest_file_contains_every_sheet_line_that_was_not_annotated(tmp_path: Path) -> None:
    lines = [
        json.dumps(record(1, "a lamp", LAMP)),
        json.dumps(record(2, "a chair")),
        "no JSON, but a note of mine",
        json.dumps(record(3, "my tent", "s1 = ")),
    ]
    source = write_sheet(tmp_path, *lines)
    before = source.read_bytes()
    report, output = annotate_sheet(source)
    path = rest_file(output)
    write_new(path, (line + "\n" for line in report.rest))
    assert path.read_text(encoding="utf-8").splitlines() == lines[1:]
    assert [(p.line, p.empty) for p in report.problems] == [(2, True), (3, False), (4, False)]
    assert source.read_bytes() == before


def test_existing_rest_file_is_never_overwritten(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    report = AnnotationReport(rest=["one"])
    for name in ("out.rest.jsonl", "out.rest-2.jsonl", "out.rest-3.jsonl"):
        path = rest_file(output)
        assert path == tmp_path / name
        write_new(path, (line + "\n" for line in report.rest))
    with pytest.raises(InputError, match="exists already"):
        rest_file(output, path)


def test_sheet_annotated_twice_gives_each_query_once(tmp_path: Path) -> None:
    first, second = record(1, "a lamp", LAMP), record(2, "can I return it")
    report, output = annotate_sheet(write_sheet(tmp_path, first, second))
    assert (report.added_count, report.known_count) == (1, 0)
    report, output = annotate_sheet(write_sheet(tmp_path, first, {**second, "plan": DESK_PLAN}))
    assert (report.added_count, report.known_count, report.problems) == (1, 1, [])
    assert [q.record.id for q in read_annotated(output)] == ["n1", "n2"]


def test_empty_sheet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is empty"):
        sheet_lines(write_sheet(tmp_path, ""))


def test_sheet_record_adds_empty_fields_to_a_query() -> None:
    assert sheet_record({"id": 3, "query": "a lamp"}) == record(3, "a lamp") | {"id": 3}
    annotated = {"id": "a", "query": "b", "plan": LAMP, "tools_removed": ["own"]}
    assert sheet_record(annotated) == {**annotated, "context": {}, "class": ""}
