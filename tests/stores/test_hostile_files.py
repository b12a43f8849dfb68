"""The time to read a file depends on its size alone; a file over the limit is reported."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from casewright.errors import InputError
from casewright.stores.documents import worker as workers
from casewright.stores.documents.file_walk import Kind, kind_of
from casewright.stores.documents.ingest import ingest
from casewright.stores.documents.reader import read_document
from casewright.stores.documents.splitter import split
from casewright.stores.documents.worker import worker
from tests.stores.document_files import document_store, write

SIZE = 200_000
#: Files of this size took minutes or did not end: their names, repeated texts and prefixes.
HOSTILE = [
    ("a.html", "<div>", ""),
    ("a.html", "<b>x", ""),
    ("a.html", "<h1>x", ""),
    ("a.html", "<!--", ""),
    ("a.html", "<a a='", ""),
    ("a.html", "<pre>x", ""),
    ("a.md", "[", ""),
    ("a.md", "# h\n", ""),
    ("a.md", " ", "# a"),
    ("a.txt", "a", ""),
    ("a.txt", "\x01\n\n", ""),
    ("a.py", "# c\n", ""),
    ("a.js", ", f = () => {\n1}", "const a = 1"),
    ("a.go", "a", "func (s "),
    ("a.sh", "(", ""),
]


@pytest.mark.parametrize(("name", "repeated", "prefix"), HOSTILE)
def test_hostile_file_is_read_within_six_seconds_of_cpu_time(
    name: str, repeated: str, prefix: str
) -> None:
    data = (prefix + repeated * (SIZE // len(repeated)) + "end\n").encode()
    kind = kind_of(name)
    assert kind is not None
    split(read_document(b"what is imported once\n", kind))
    start = time.process_time()
    split(read_document(data, kind))
    assert time.process_time() - start < 6


def test_hostile_html_page_keeps_its_visible_words() -> None:
    page = "<div><b>one<svg><p>no</svg>" * 2000 + "two<h2>three<p a='>four</p><pre>five<!-- six -->"
    text = " ".join(chunk.text for chunk in split(read_document(page.encode(), Kind("html"))))
    assert text.count("one") == 2000
    assert all(word in text for word in ("two", "three", "five"))
    assert "no" not in text.replace("one", "")


def test_html_page_without_optional_tags_is_read() -> None:
    page = "<!doctype html><head><meta charset=utf-8><title>Shop</title><h1>Help</h1><p>Ask us"
    (chunk,) = split(read_document(page.encode(), Kind("html")))
    assert (chunk.title, chunk.text) == ("Shop", "# Help\n\nAsk us")


def test_markdown_line_with_seven_number_signs_is_text() -> None:
    text = "# A\n\n" + "#" * 7 + " B\n\nwords\n"
    (chunk,) = split(read_document(text.encode(), Kind("markdown")))
    assert chunk.headings == ("A",)


def test_ingest_reports_a_file_over_the_time_limit_and_stores_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "SECONDS_PER_MEGABYTE", 0.0)
    docs = write(tmp_path / "docs", {"a.txt": "words\n", "b.txt": "a. " * 600_000, "c.md": "# C\n"})
    with document_store() as store:
        report = ingest(store, docs, seconds=2)
        ((name, reason),) = report.failed
        assert (name, report.files) == ("b.txt", 2)
        assert reason == "reading it takes more than 2 s of CPU time"


def test_worker_reports_a_dead_reader_process_and_reads_the_next_file() -> None:
    with worker() as reader:
        assert reader.chunks(b"words\n", Kind("text"))
        (child,) = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()[-1:]
        os.kill(int(child), signal.SIGSEGV)
        with pytest.raises(InputError, match="ended the process"):
            reader.chunks(b"words\n", Kind("text"))
        assert reader.chunks(b"words\n", Kind("text"))
