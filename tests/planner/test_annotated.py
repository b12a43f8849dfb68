from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.planner import AnnotatedQuery, parse_plan, read_annotated

RECORD: dict[str, Any] = {
    "id": "q1",
    "query": "wool socks, red",
    "context": {"page": "p1"},
    "plan": 's1 = find(query="wool socks")',
    "class": "find",
    "must": {"s1.query": ["socks"]},
    "accept": [["own", "find"], ["desk"]],
}


def write_lines(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_annotated_query_reads_all_fields_of_a_record() -> None:
    query = AnnotatedQuery.read(RECORD)
    assert query.query == "wool socks, red"
    assert query.record.id == "q1"
    assert query.record.context == {"page": "p1"}
    assert query.plan == parse_plan(RECORD["plan"])
    assert query.label == "find"
    assert query.must == {"s1.query": ("socks",)}
    assert query.accept == (("own", "find"), ("desk",))


def test_annotated_query_requires_only_query_and_plan() -> None:
    query = AnnotatedQuery.read({"query": "hi", "plan": "s1 = no_evidence()", "source": "own"})
    assert (query.label, dict(query.must), query.accept) == ("", {}, ())
    assert (query.record.context, query.record.tools_extra) == ({}, [])


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"query": None}, "query"),
        ({"query": 5}, "query"),
        ({"context": None}, "context"),
        ({"context": ["page"]}, "context"),
        ({"id": 1.5}, "id"),
        ({"tools_extra": {}}, "tools_extra"),
        ({"tools_extra": ["a"]}, "tools_extra.0"),
        ({"tools_removed": "find"}, "tools_removed"),
        ({"tools_removed": [1]}, "tools_removed.0"),
        ({"plan": None}, "plan"),
        ({"plan": ["s1 = a()"]}, "plan"),
        ({"plan": "s2 = a()"}, "plan: s1: .*without gaps"),
        ({"must": ["socks"]}, "must"),
        ({"must": {"s1.query": 5}}, "must"),
        ({"must": {"s1.query": "socks"}}, "must"),
        ({"accept": 5}, "accept"),
        ({"accept": [5]}, "accept"),
        ({"accept": ["own"]}, "accept"),
    ],
)
def test_annotated_query_with_an_invalid_value_raises_input_error_naming_the_field(
    change: dict[str, Any], field: str
) -> None:
    with pytest.raises(InputError, match=field):
        AnnotatedQuery.read({**RECORD, **change})


@pytest.mark.parametrize("field", ["query", "plan"])
def test_annotated_query_without_query_or_plan_raises_input_error_naming_it(field: str) -> None:
    record = {name: value for name, value in RECORD.items() if name != field}
    with pytest.raises(InputError, match=field):
        AnnotatedQuery.read(record)


@pytest.mark.parametrize("record", [None, [], "text", 5])
def test_annotated_query_that_is_no_json_object_raises_input_error(record: Any) -> None:
    with pytest.raises(InputError, match=type(record).__name__):
        AnnotatedQuery.read(record)


def test_read_annotated_keeps_the_order_of_lines_and_skips_blank_ones(tmp_path: Path) -> None:
    lines = [json.dumps({**RECORD, "id": i}) for i in range(3)]
    path = write_lines(tmp_path / "q.jsonl", lines[0], "", lines[1], "  ", lines[2], "")
    assert [query.record.id for query in read_annotated(path)] == [0, 1, 2]


def test_read_annotated_splits_lines_at_line_feeds_only(tmp_path: Path) -> None:
    record = {**RECORD, "query": "one\u2028two\x85three"}
    path = write_lines(tmp_path / "q.jsonl", json.dumps(record, ensure_ascii=False))
    assert read_annotated(path)[0].query == record["query"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "Expecting"),
        ("[]", "list"),
        (json.dumps({**RECORD, "plan": "s1 = a("}), "plan: s1"),
        (json.dumps({**RECORD, "query": 5}), "query"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_read_annotated_error_names_the_file_and_the_line(
    tmp_path: Path, line: str, message: str
) -> None:
    path = write_lines(tmp_path / "bad.jsonl", json.dumps(RECORD), "", line)
    with pytest.raises(InputError, match=rf"bad\.jsonl, line 3: .*{message}"):
        read_annotated(path)


def test_read_annotated_raises_input_error_for_an_unreadable_file(tmp_path: Path) -> None:
    (tmp_path / "latin.jsonl").write_bytes('{"query": "é"}'.encode("latin-1"))
    for path in (tmp_path / "missing.jsonl", tmp_path, tmp_path / "latin.jsonl"):
        with pytest.raises(InputError, match=path.name):
            read_annotated(path)
