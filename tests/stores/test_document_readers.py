"""Reading of documents: the chunks of each file format, and the files that are skipped."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from casewright.stores import CaseStore
from casewright.stores.documents.ingest import ingest
from tests.stores.document_files import chunks_of, document_store, write

RST = """\
Settings
========

See :ref:`the guide <guide>` and :class:`~shop.Till`.

.. confval:: speed
   :default: ``12``

   Turns a minute.

.. include:: /etc/passwd

=====  =====
Part   Oil
=====  =====
mill   red
=====  =====

oiler
   Who oils the mill.

.. code-block:: python
   :emphasize-lines: 1

   def oil():

       return "red"
"""
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Mill\n", "Oil it."]},
        {"cell_type": "code", "metadata": {}, "source": "oil()", "outputs": []},
    ],
    "metadata": {"kernelspec": {"language": "python", "name": "python3"}},
    "nbformat": 4,
    "nbformat_minor": 4,
}
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
BODY = """<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>The mill</w:t></w:r></w:p>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Part</w:t></w:r></w:p></w:tc>
<w:tc><w:p><w:r><w:t>Oil</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"""
LOG = "".join(f"2026-05-04 10:00:{second:02} INFO started\n" for second in range(30))


@pytest.fixture
def store() -> Iterator[CaseStore]:
    with document_store() as case_store:
        yield case_store


def docx(body: str) -> bytes:
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/'
        'content-types"><Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
        'relationships"><Relationship Id="a" Target="word/document.xml" Type="http://schemas.'
        'openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{WORD}"><w:style w:type="paragraph" '
        'w:styleId="Heading1"><w:name w:val="heading 1"/></w:style></w:styles>',
        "word/_rels/document.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/'
        'package/2006/relationships"><Relationship Id="s" Target="styles.xml" Type="http://'
        'schemas.openxmlformats.org/officeDocument/2006/relationships/styles"/></Relationships>',
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["settings.rst", "settings.txt"])
def test_restructuredtext_keeps_sections_objects_tables_code_and_lines(
    store: CaseStore, tmp_path: Path, name: str
) -> None:
    ingest(store, write(tmp_path / "docs", {name: RST}))
    first, speed, *rest = chunks_of(store, name)
    assert "See the guide and `Till`." in first["text"]
    assert (first["heading"], first["first_line"]) == ("Settings", 2)
    assert speed["heading"] == "Settings › speed"
    assert (speed["first_line"], speed["last_line"]) == (6, 9)
    assert "default: `12`" in speed["text"]
    assert "Turns a minute." in speed["text"]
    # Text after an object belongs to the section that contains the object.
    text = "\n".join(chunk["text"] for chunk in rest)
    assert {chunk["heading"] for chunk in rest} == {"Settings"}
    assert "| Part | Oil |\n| --- | --- |\n| mill | red |" in text
    assert "- oiler: Who oils the mill." in text
    assert '```\ndef oil():\n\n    return "red"\n```' in text
    assert "root:" not in text


@pytest.mark.parametrize(
    ("name", "data", "heading", "text"),
    [
        ("mill.docx", docx(BODY), "The mill", "Part | Oil"),
        ("mill.ipynb", json.dumps(NOTEBOOK), "Mill", "```python\noil()\n```"),
        ("oils.csv", "part;oil\nmill;red\n\nlathe;\n", None, "- part: mill; oil: red"),
        ("oils.tsv", "part\toil\n'mill'\tred\n", None, "- part: 'mill'; oil: red"),
        ("oils.json", '{"mill": {"oil": "red", "days": [1, 2]}}', None, "- mill.oil: red"),
        ("oils.jsonl", '{"oil": "red"}\n{"oil": "blue"}\n', None, "- oil: red\n- oil: blue"),
        ("torn.json", '{"oil": "red",', None, '{"oil": "red",'),
        ("front.md", "---\ntitle: Oils\n---\n\n## Red\n\nFor mills.\n", "Red", "For mills."),
    ],
)
def test_chunks_keep_the_structure_of_their_file(
    store: CaseStore, tmp_path: Path, name: str, data: str | bytes, heading: str, text: str
) -> None:
    assert ingest(store, write(tmp_path / "docs", {name: data})).failed == ()
    (chunk,) = chunks_of(store, name)
    assert chunk.get("heading") == heading
    assert text in chunk["text"]


def test_title_in_the_front_matter_of_markdown_is_the_chunk_title(
    store: CaseStore, tmp_path: Path
) -> None:
    text = '---\ntitle: "Oils"\n---\n\n## Red\n\nFor mills.\n'
    ingest(store, write(tmp_path / "docs", {"front.md": text}))
    (chunk,) = chunks_of(store, "front.md")
    assert (chunk["title"], chunk["first_line"]) == ("Oils", 5)
    assert "title:" not in chunk["text"]


def test_csv_rows_have_the_line_numbers_of_their_file(store: CaseStore, tmp_path: Path) -> None:
    table = 'part,"oil\nor fat"\nmill,"red\nor blue"\nsaw,green\n'
    ingest(store, write(tmp_path / "docs", {"a.csv": table}))
    (chunk,) = chunks_of(store, "a.csv")
    assert chunk["text"] == "- part: mill; oil or fat: red or blue\n- part: saw; oil or fat: green"
    assert (chunk["first_line"], chunk["last_line"]) == (4, 5)


def test_json_lines_record_with_an_escaped_newline_is_one_line(
    store: CaseStore, tmp_path: Path
) -> None:
    lines = '{"part": "mill", "oil": "red\\nor blue"}\n{"part": "saw"}\n'
    ingest(store, write(tmp_path / "docs", {"a.jsonl": lines}))
    (chunk,) = chunks_of(store, "a.jsonl")
    assert (chunk["first_line"], chunk["last_line"]) == (1, 2)
    assert "oil: red or blue" in chunk["text"]


def test_text_file_with_underlined_titles_is_split_by_section(
    store: CaseStore, tmp_path: Path
) -> None:
    text = "Mill\n====\n\nIt turns.\n\nOil\n---\n\nTake :ref:`castor oil <castor>`.\n"
    ingest(store, write(tmp_path / "docs", {"mill.txt": text}))
    mill, oil = chunks_of(store, "mill.txt")
    assert (mill["heading"], oil["heading"]) == ("Mill", "Mill › Oil")
    assert "Take castor oil." in oil["text"]


@pytest.mark.parametrize(
    ("encoding", "name"), [("latin-1", "CP1252"), ("utf-16-le", "UTF-16-LE"), ("utf-16-be", "BE")]
)
def test_text_in_another_encoding_than_utf8_is_read_with_a_note(
    store: CaseStore, tmp_path: Path, encoding: str, name: str
) -> None:
    text = "Der Mühlenöler ölt die Mühle.\n"
    report = ingest(store, write(tmp_path / "docs", {"mill.txt": text.encode(encoding)}))
    assert chunks_of(store, "mill.txt")[0]["text"] == text.strip()
    ((source, note),) = report.notes
    assert source == "mill.txt"
    assert name in note


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("run.log", "words\n", "it is a log"),
        ("run.log.3", "words\n", "it is a log"),
        ("started.txt", LOG, "it is a log"),
        ("api_pb2.py", "# Generated by the compiler.  DO NOT EDIT!\nx = 1\n", "made by a program"),
        ("api.go", "// Code generated by x; DO NOT EDIT.\npackage a\n", "made by a program"),
        ("packed.js", "var a=1;" * 200, "made by a program"),
    ],
)
def test_dry_run_reports_logs_and_generated_files_as_skipped(
    store: CaseStore, tmp_path: Path, name: str, text: str, reason: str
) -> None:
    docs = write(tmp_path / "docs", {name: text, "a.txt": "Red apples."})
    ((source, message),) = ingest(store, docs, dry_run=True).skipped
    assert source == name
    assert reason in message


def test_change_list_with_dates_is_not_skipped_as_a_log(store: CaseStore, tmp_path: Path) -> None:
    text = "".join(f"2026-05-{day:02} The mill was oiled.\n" for day in range(1, 30))
    assert ingest(store, write(tmp_path / "docs", {"changes.txt": text})).skipped == ()


def test_split_code_block_is_fenced_in_each_chunk(store: CaseStore, tmp_path: Path) -> None:
    code = "\n\n".join(f"call_{number}(argument, other_argument)" for number in range(60))
    ingest(store, write(tmp_path / "docs", {"a.md": f"# Calls\n\n```python\n{code}\n```\n"}))
    texts = [chunk["text"] for chunk in chunks_of(store, "a.md")]
    assert len(texts) > 1
    assert all(text.count("```") == 2 for text in texts)
