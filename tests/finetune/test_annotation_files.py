"""Files of queries in several formats, and output files that a killed run leaves intact."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from casewright.errors import InputError
from casewright.finetune.queries.query_files import (
    QueryFile,
    check_output,
    json_line,
    read_queries,
)

FORMATS = {
    "list of texts": '["a lamp", "a \\"big\\" chair"]',
    "list of records": '[{"query": "a lamp"}, {"query": "a \\"big\\" chair", "n": 1}]',
    "records": '{"query": "a lamp"}\n\n{"query": "a \\"big\\" chair"}\n',
    "texts of JSON": '"a lamp"\n"a \\"big\\" chair"\n',
    "plain text": '\ufeffa lamp\r\n\r\n  a "big" chair\r\n',
}


@pytest.mark.parametrize("format_name", FORMATS)
def test_read_queries_reads_every_file_format(format_name: str, tmp_path: Path) -> None:
    file = tmp_path / "asked.txt"
    file.write_text(FORMATS[format_name], encoding="utf-8")
    queries = read_queries(file)
    assert [record["query"] for record in queries] == ["a lamp", 'a "big" chair']
    assert len({record["id"] for record in queries}) == 2
    assert queries[0]["id"] == "asked-1"


@pytest.mark.skipif("CASEWRIGHT_DATA" not in os.environ, reason="CASEWRIGHT_DATA is not set")
def test_read_queries_reads_the_12087_shopping_goals() -> None:
    queries = read_queries(Path(os.environ["CASEWRIGHT_DATA"]) / "webshop_goals/human_goals.json")
    assert len(queries) == len({record["id"] for record in queries}) == 12_087


def test_read_queries_keeps_the_fields_of_annotated_queries(tmp_path: Path) -> None:
    record = {"id": "q7", "query": "a lamp", "context": {"page": "p"}, "plan": "s1 = f()"}
    file = tmp_path / "queries.jsonl"
    file.write_text(json.dumps(record) + "\n" + json.dumps(record) + "\n", encoding="utf-8")
    first, second = read_queries(file)
    assert first == record
    assert second == {**record, "id": "q7-queries-2"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b"[1, 2", "is no JSON list"),
        ("a.jsonl", b'{"query": "a"}\n{"query": \n', "line 2: no JSON"),
        ("a.jsonl", b'{"question": "a"}\n', "line 1: query: Field required"),
        ("a.json", b'["a", 3]', "entry 2: The record is a int"),
        ("a.json", b'["a", "  "]', "entry 2: The question is empty"),
        ("a.txt", b"\n\n", "holds no query"),
        ("a.json", b"[]", "holds no query"),
        ("a.txt", b"\xff\xfe\x00", "no UTF-8 text"),
    ],
    ids=["cut", "line", "field", "number", "blank", "empty", "empty-list", "encoding"],
)
def test_read_queries_error_names_the_file_and_the_place(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_queries(tmp_path / name)
    assert name in str(caught.value)


def test_read_queries_raises_input_error_for_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_queries(tmp_path / "none.txt")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_queries(tmp_path)


def test_plain_text_that_starts_with_a_bracket_is_read_as_text(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("[urgent] where is my lamp\nhello\n", encoding="utf-8")
    assert [r["query"] for r in read_queries(file)] == ["[urgent] where is my lamp", "hello"]


def test_check_output_refuses_input_files_and_folders(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="is read by this command"):
        check_output(tmp_path / "." / "a.jsonl", None, file)
    for output in (tmp_path, tmp_path / "none" / "a.jsonl"):
        with pytest.raises(InputError, match="cannot be written"):
            check_output(output)


def test_json_line_encodes_a_lone_surrogate() -> None:
    assert json.loads(json_line({"query": "ä \ud800"}).encode()) == {"query": "ä \ud800"}


def test_resumed_lines_appends_to_existing_records(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    QueryFile(file).append({"query": "a"})
    reopened = QueryFile(file)
    assert reopened.records == [{"query": "a"}]
    reopened.append({"query": "b"})
    assert [r["query"] for r in QueryFile(file).records] == ["a", "b"]


def test_resumed_lines_refuses_a_second_run_on_the_same_file(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    first, second = QueryFile(file), QueryFile(file)
    first.append({"query": "a"})
    with pytest.raises(InputError, match="perhaps by another run"):
        second.append({"query": "a"})
    first.append({"query": "b"})
    assert len(QueryFile(file).records) == 2


@pytest.mark.parametrize(
    ("tail", "remaining"),
    [('{"query": "b"', ["a"]), ('{"query": "b"}', ["a", "b"]), ("{", ["a"])],
    ids=["torn", "without-its-end", "one-letter"],
)
def test_resumed_lines_repairs_the_last_line_of_a_killed_run(
    tail: str, remaining: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text('{"query": "a"}\n' + tail, encoding="utf-8")
    QueryFile(file).append({"query": "c"})
    lines = file.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["query"] for line in lines] == [*remaining, "c"]


@pytest.mark.parametrize(
    "content", ['{\n "query": "a"\n}', '["a"]\n', "my notes", '{"a": 1}'], ids=range(4)
)
def test_resumed_lines_refuses_another_file_and_leaves_it_unchanged(
    content: str, tmp_path: Path
) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"line 1: no annotated query"):
        QueryFile(file)
    assert file.read_text(encoding="utf-8") == content
