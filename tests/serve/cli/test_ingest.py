"""`casewright ingest`: its output, its exit codes, and questions about the documents."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from uuid import uuid4

import pytest

from tests.serve.helpers import command, environment, new_home, one_line_error, result, run
from tests.stores.document_files import pdf, write

FILES = {
    "coffee.md": "# Coffee machine\n\nDescale the machine every three months.\n",
    "report.pdf": pdf(["The harbour office moved to Oslo in May."]),
    "pump.py": 'def prime(seconds):\n    """Fill the pump with water."""\n    return seconds\n',
    "page.html": "<h1>Brakes</h1><p>Replace brake pads thinner than 1 mm.</p>",
    "notes/a.txt": "The kettle whistles at noon.\n",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home without stores."""
    return new_home(tmp_path / "home")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write(tmp_path / "manuals", FILES)


def without_progress(stderr: str) -> list[str]:
    """Return the lines of stderr without those of progress, which only a slow ingest prints."""
    return [line for line in stderr.splitlines() if not line.startswith("Ingesting: ")]


def test_ingested_documents_answer_questions_and_off_topic_questions_are_refused(
    home: Path, docs: Path
) -> None:
    assert "casewright ingest PATH" in one_line_error(
        run(home, "ask", "--domain", "documents", "how often to descale?")
    )
    ingested = run(home, "ingest", docs)
    assert (ingested.returncode, without_progress(ingested.stderr)) == (0, [])
    assert "5 files of" in ingested.stdout
    assert 'casewright ask --domain documents "…"' in ingested.stdout
    completed = run(home, "ask", "--domain", "documents", "Where did the harbour office move?")
    assert completed.returncode == 0
    assert "manuals/report.pdf, page 1" in completed.stdout
    assert "Oslo" in completed.stdout
    answer = result(run(home, "ask", "-d", "documents", "How often must I descale?", "--json"))
    assert answer["plan"] == "s1 = document_search(query=question)"
    assert answer["evidence"][0]["source"] == "manuals/coffee.md, lines 1-3 (Coffee machine)"
    refusal = result(run(home, "ask", "-d", "documents", "Who won the world cup?", "--json"))
    assert (refusal["refused"], refusal["citations"], answer["refused"]) == (True, [], False)
    assert refusal["text"].startswith("Nothing found about “Who won the world cup?”. Nearest: ")
    counts = result(run(home, "domains", "--build", "documents", "--json"))["cases"]
    assert counts["documents"] == 5
    domains = result(run(home, "domains", "--json"))
    assert [domain["name"] for domain in domains if domain["built"]] == ["documents"]


def test_ingest_prints_the_ask_command_with_its_store_and_guessed_encodings(
    home: Path, tmp_path: Path
) -> None:
    docs = write(tmp_path / "docs", {"tea.txt": "Tee für Müller.".encode("latin-1")})
    completed = run(home, "ingest", docs, "--into", tmp_path / "store")
    assert f'casewright ask --domain documents --store {tmp_path / "store"} "…"' in completed.stdout
    assert "tea.txt was read as CP1252" in completed.stdout


def test_second_ingest_counts_added_unchanged_and_removed_cases(home: Path, docs: Path) -> None:
    first = result(run(home, "ingest", docs, "--json"))
    assert (first["files"], first["added"], first["cases"]) == (5, 5, 5)
    assert (first["root"], first["failed"], first["skipped"]) == (str(docs), [], [])
    assert first["location"] == str(home / "data" / "documents")
    (docs / "notes" / "a.txt").unlink()
    write(docs, {"coffee.md": "# Coffee machine\n\nDescale it every week.\n"})
    second = result(run(home, "ingest", docs, "--json"))
    counts = {name: second[name] for name in ("files", "added", "unchanged", "removed", "cases")}
    assert counts == {"files": 4, "added": 1, "unchanged": 3, "removed": 2, "cases": 4}


def test_ingest_reports_unreadable_files_and_stores_the_others(home: Path, docs: Path) -> None:
    write(docs, {"old.txt": b"c\0d", "cut.pdf": pdf(["x"])[:200], "blob.bin": b"\x80\0"})
    completed = run(home, "ingest", docs)
    assert (completed.returncode, without_progress(completed.stderr)) == (0, [])
    assert "5 files of" in completed.stdout
    for text in ("old.txt", "zero bytes", "cut.pdf", "not a readable PDF"):
        assert text in completed.stdout
    report = result(run(home, "ingest", docs, "--json"))
    assert [item["path"] for item in report["failed"]] == ["cut.pdf", "old.txt"]
    assert [item["path"] for item in report["skipped"]] == ["blob.bin"]


def test_ingest_fails_with_a_report_when_no_file_is_readable(home: Path, tmp_path: Path) -> None:
    docs = write(tmp_path / "old", {"old.txt": b"c\0d"})
    completed = run(home, "ingest", docs, "--json")
    assert completed.returncode == 2
    assert completed.stderr.startswith("error: None of the files could be read")
    assert '"path": "old.txt"' in completed.stdout


def test_ingest_of_a_missing_path_is_an_error(home: Path) -> None:
    assert "it is not there" in one_line_error(run(home, "ingest", home / "nowhere"))


def test_ingest_of_an_empty_folder_is_no_error_and_names_the_formats(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    assert result(run(home, "ingest", tmp_path / "empty", "--json"))["files"] == 0
    completed = run(home, "ingest", tmp_path / "empty")
    assert (completed.returncode, without_progress(completed.stderr)) == (0, [])
    message = f"Nothing to ingest in {tmp_path / 'empty'}. Formats: text, Markdown"
    assert completed.stdout.startswith(message)
    assert "PDF" in completed.stdout


def test_first_line_of_ingest_counts_files_in_singular_or_plural(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = write(tmp_path / "a folder whose name is longer than any column", {"a.txt": "Tea.\n"})
    monkeypatch.setenv("COLUMNS", "40")
    completed = run(home, "ingest", docs, "--dry-run")
    assert completed.stdout.splitlines()[0] == f"1 file of {docs} would be stored as cases."
    completed = run(home, "ingest", docs)
    assert completed.stdout.splitlines()[0] == f"1 file of {docs} is stored as cases."
    write(docs, {"b.txt": "Coffee.\n"})
    completed = run(home, "ingest", docs)
    assert completed.stdout.splitlines()[0] == f"2 files of {docs} are stored as cases."


def test_ingest_names_at_most_five_skipped_files_of_each_reason(home: Path, tmp_path: Path) -> None:
    mixed = write(tmp_path / "few", {"a.txt": "Tea.\n", "blank.txt": "", "blob.bin": b"\x80\0"})
    output = run(home, "ingest", mixed).stdout
    assert "Skipped 1 file, since it has no text: blank.txt\n" in output
    assert "unknown type: blob.bin\n" in output
    texts = write(tmp_path / "many", {f"{n}.txt": "" for n in range(7)})
    output = run(home, "ingest", texts).stdout
    names = "0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 2 more"
    assert f"Skipped 7 files, since it has no text: {names}\n" in output


def test_options_include_and_exclude_select_files_by_pattern(home: Path, docs: Path) -> None:
    report = result(run(home, "ingest", docs, "--include", "*.md", "--include", "notes", "--json"))
    assert report["files"] == 2
    report = result(run(home, "ingest", docs, "--exclude", "*.p*", "--exclude", "notes", "--json"))
    assert (report["files"], report["removed"], report["cases"]) == (2, 0, 3)
    message = one_line_error(run(home, "ingest", docs, "--include", "zzz*"))
    assert "'zzz*' matches none of the files" in message
    assert result(run(home, "ingest", docs, "--json"))["unchanged"] == 3


def test_option_remove_deletes_the_cases_of_a_folder_that_no_longer_exists(
    home: Path, docs: Path, tmp_path: Path
) -> None:
    assert "no documents at all" in one_line_error(run(home, "ingest", docs, "--remove"))
    assert not (home / "data" / "documents").exists()
    run(home, "ingest", docs)
    renamed = docs.rename(tmp_path / "elsewhere")
    assert str(docs) in one_line_error(run(home, "ingest", renamed, "--remove"))
    assert "--dry-run" in one_line_error(run(home, "ingest", docs, "--remove", "--dry-run"))
    completed = run(home, "ingest", docs, "--remove")
    assert (completed.returncode, without_progress(completed.stderr)) == (0, [])
    assert "Removed 5 cases" in completed.stdout
    assert "nothing was removed" in one_line_error(run(home, "ingest", docs, "--remove", "--json"))
    # Documents were stored before, so the message does not say "yet".
    message = one_line_error(run(home, "ask", "--domain", "documents", "how often to descale?"))
    assert "No documents are stored in" in message
    assert "yet" not in message


def test_dry_run_writes_nothing(home: Path, docs: Path) -> None:
    report = result(run(home, "ingest", docs, "--dry-run", "--json"))
    assert (report["dry_run"], report["added"], report["cases"]) == (True, 5, 0)
    assert not (home / "data").exists()


def test_option_into_writes_a_store_that_the_option_store_reads(
    home: Path, docs: Path, tmp_path: Path
) -> None:
    store = tmp_path / "place"
    report = result(run(home, "ingest", docs, "--into", store, "--json"))
    assert report["location"] == str(store)
    arguments = ("ask", "--domain", "documents", "--json", "When does the kettle whistle?")
    answer = result(run(home, *arguments, "--store", store))
    assert answer["evidence"][0]["source"] == "manuals/notes/a.txt, line 1"
    assert not (home / "data").exists()
    refused = run(home, "ask", "--domain", "shopping", "--store", store, "Where is my tablet?")
    assert "goes with --domain documents" in one_line_error(refused)


def test_ingest_that_was_interrupted_is_completed_by_the_next_ingest(
    home: Path, tmp_path: Path
) -> None:
    # The texts are new, since embeddings of earlier texts are in the cache.
    docs = write(tmp_path / "many", {f"{n:04}.txt": f"Item {uuid4()}." for n in range(600)})
    shards = home / "data" / "documents"
    process = subprocess.Popen(
        [*command(), "ingest", str(docs)],
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell lets processes in the background ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not list(shards.glob("shards/documents/*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, ""), stderr
    assert "Stopped." in stderr
    assert "Traceback" not in stderr
    report = result(run(home, "ingest", docs, "--json"))
    assert report["unchanged"] + report["added"] == report["cases"] == 600
    assert 0 < report["added"] < 600
