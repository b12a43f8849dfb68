"""`casewright ingest`, as people run it: what it prints, its exit codes, and asking afterwards."""

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
def bare(tmp_path: Path) -> Path:
    """A home without stores."""
    return new_home(tmp_path / "home")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write(tmp_path / "manuals", FILES)


def unusual(told: str) -> list[str]:
    """Return the lines on stderr beside those of progress, which a busy machine has time for."""
    return [line for line in told.splitlines() if not line.startswith("Ingesting: ")]


def test_ingested_documents_answer_questions_and_off_topic_questions_are_refused(
    bare: Path, docs: Path
) -> None:
    assert "casewright ingest PATH" in one_line_error(
        run(bare, "ask", "--domain", "documents", "how often to descale?")
    )
    done = run(bare, "ingest", docs)
    assert (done.returncode, unusual(done.stderr)) == (0, [])
    assert "5 files of" in done.stdout
    assert 'casewright ask --domain documents "…"' in done.stdout
    asked = run(bare, "ask", "--domain", "documents", "Where did the harbour office move?")
    assert asked.returncode == 0
    assert "manuals/report.pdf, page 1" in asked.stdout
    assert "Oslo" in asked.stdout
    answer = result(run(bare, "ask", "-d", "documents", "How often must I descale?", "--json"))
    assert answer["plan"] == "s1 = document_search(query=question)"
    assert answer["evidence"][0]["source"] == "manuals/coffee.md, lines 1-3 (Coffee machine)"
    off_topic = result(run(bare, "ask", "-d", "documents", "Who won the world cup?", "--json"))
    assert (off_topic["refused"], off_topic["citations"], answer["refused"]) == (True, [], False)
    assert off_topic["text"].startswith("Nothing found about “Who won the world cup?”. Nearest: ")
    counts = result(run(bare, "domains", "--build", "documents", "--json"))["cases"]
    assert counts["documents"] == 5
    listed = result(run(bare, "domains", "--json"))
    assert [domain["name"] for domain in listed if domain["built"]] == ["documents"]


def test_ingest_prints_the_ask_command_with_its_store_and_guessed_encodings(
    bare: Path, tmp_path: Path
) -> None:
    docs = write(tmp_path / "docs", {"tea.txt": "Tee für Müller.".encode("latin-1")})
    done = run(bare, "ingest", docs, "--into", tmp_path / "store")
    assert f'casewright ask --domain documents --store {tmp_path / "store"} "…"' in done.stdout
    assert "tea.txt was read as CP1252" in done.stdout


def test_second_ingest_counts_added_unchanged_and_removed_cases(bare: Path, docs: Path) -> None:
    first = result(run(bare, "ingest", docs, "--json"))
    assert (first["files"], first["added"], first["cases"]) == (5, 5, 5)
    assert (first["root"], first["failed"], first["skipped"]) == (str(docs), [], [])
    assert first["location"] == str(bare / "data" / "documents")
    (docs / "notes" / "a.txt").unlink()
    write(docs, {"coffee.md": "# Coffee machine\n\nDescale it every week.\n"})
    second = result(run(bare, "ingest", docs, "--json"))
    counts = {name: second[name] for name in ("files", "added", "unchanged", "removed", "cases")}
    assert counts == {"files": 4, "added": 1, "unchanged": 3, "removed": 2, "cases": 4}


def test_ingest_reports_unreadable_files_and_stores_the_others(bare: Path, docs: Path) -> None:
    write(docs, {"old.txt": b"c\0d", "cut.pdf": pdf(["x"])[:200], "blob.bin": b"\x80\0"})
    done = run(bare, "ingest", docs)
    assert (done.returncode, unusual(done.stderr)) == (0, [])
    assert "5 files of" in done.stdout
    for told in ("old.txt", "zero bytes", "cut.pdf", "not a readable PDF"):
        assert told in done.stdout
    told = result(run(bare, "ingest", docs, "--json"))
    assert [item["path"] for item in told["failed"]] == ["cut.pdf", "old.txt"]
    assert [item["path"] for item in told["skipped"]] == ["blob.bin"]


def test_ingest_fails_with_a_report_when_no_file_is_readable(bare: Path, tmp_path: Path) -> None:
    docs = write(tmp_path / "old", {"old.txt": b"c\0d"})
    done = run(bare, "ingest", docs, "--json")
    assert done.returncode == 2
    assert done.stderr.startswith("error: None of the files could be read")
    assert '"path": "old.txt"' in done.stdout


def test_ingest_of_a_missing_path_is_an_error(bare: Path) -> None:
    assert "it is not there" in one_line_error(run(bare, "ingest", bare / "nowhere"))


def test_ingest_of_an_empty_folder_is_no_error_and_names_the_formats(
    bare: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    assert result(run(bare, "ingest", tmp_path / "empty", "--json"))["files"] == 0
    done = run(bare, "ingest", tmp_path / "empty")
    assert (done.returncode, unusual(done.stderr)) == (0, [])
    told = f"Nothing to ingest in {tmp_path / 'empty'}. Formats: text, Markdown"
    assert done.stdout.startswith(told)
    assert "PDF" in done.stdout


def test_first_line_of_ingest_counts_files_in_singular_or_plural(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = write(tmp_path / "a folder whose name is longer than any column", {"a.txt": "Tea.\n"})
    monkeypatch.setenv("COLUMNS", "40")
    done = run(bare, "ingest", docs, "--dry-run")
    assert done.stdout.splitlines()[0] == f"1 file of {docs} would be stored as cases."
    done = run(bare, "ingest", docs)
    assert done.stdout.splitlines()[0] == f"1 file of {docs} is stored as cases."
    write(docs, {"b.txt": "Coffee.\n"})
    done = run(bare, "ingest", docs)
    assert done.stdout.splitlines()[0] == f"2 files of {docs} are stored as cases."


def test_ingest_names_at_most_five_skipped_files_of_each_reason(bare: Path, tmp_path: Path) -> None:
    few = write(tmp_path / "few", {"a.txt": "Tea.\n", "blank.txt": "", "blob.bin": b"\x80\0"})
    told = run(bare, "ingest", few).stdout
    assert "Skipped 1 file, since it has no text: blank.txt\n" in told
    assert "unknown type: blob.bin\n" in told
    many = write(tmp_path / "many", {f"{n}.txt": "" for n in range(7)})
    told = run(bare, "ingest", many).stdout
    named = "0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 2 more"
    assert f"Skipped 7 files, since it has no text: {named}\n" in told


def test_options_include_and_exclude_select_files_by_pattern(bare: Path, docs: Path) -> None:
    told = result(run(bare, "ingest", docs, "--include", "*.md", "--include", "notes", "--json"))
    assert told["files"] == 2
    told = result(run(bare, "ingest", docs, "--exclude", "*.p*", "--exclude", "notes", "--json"))
    assert (told["files"], told["removed"], told["cases"]) == (2, 0, 3)
    refused = one_line_error(run(bare, "ingest", docs, "--include", "zzz*"))
    assert "'zzz*' matches none of the files" in refused
    assert result(run(bare, "ingest", docs, "--json"))["unchanged"] == 3


def test_option_remove_deletes_the_cases_of_a_folder_that_no_longer_exists(
    bare: Path, docs: Path, tmp_path: Path
) -> None:
    assert "no documents at all" in one_line_error(run(bare, "ingest", docs, "--remove"))
    assert not (bare / "data" / "documents").exists()
    run(bare, "ingest", docs)
    gone = docs.rename(tmp_path / "elsewhere")
    assert str(docs) in one_line_error(run(bare, "ingest", gone, "--remove"))
    assert "--dry-run" in one_line_error(run(bare, "ingest", docs, "--remove", "--dry-run"))
    done = run(bare, "ingest", docs, "--remove")
    assert (done.returncode, unusual(done.stderr)) == (0, [])
    assert "Removed 5 cases" in done.stdout
    assert "nothing was removed" in one_line_error(run(bare, "ingest", docs, "--remove", "--json"))
    # What is gone was there once.
    asked = one_line_error(run(bare, "ask", "--domain", "documents", "how often to descale?"))
    assert "No documents are stored in" in asked
    assert "yet" not in asked


def test_dry_run_writes_nothing(bare: Path, docs: Path) -> None:
    told = result(run(bare, "ingest", docs, "--dry-run", "--json"))
    assert (told["dry_run"], told["added"], told["cases"]) == (True, 5, 0)
    assert not (bare / "data").exists()


def test_option_into_writes_a_store_that_the_option_store_reads(
    bare: Path, docs: Path, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    told = result(run(bare, "ingest", docs, "--into", place, "--json"))
    assert told["location"] == str(place)
    asked = ("ask", "--domain", "documents", "--json", "When does the kettle whistle?")
    answer = result(run(bare, *asked, "--store", place))
    assert answer["evidence"][0]["source"] == "manuals/notes/a.txt, line 1"
    assert not (bare / "data").exists()
    refused = run(bare, "ask", "--domain", "shopping", "--store", place, "Where is my tablet?")
    assert "goes with --domain documents" in one_line_error(refused)


def test_ingest_that_was_interrupted_is_completed_by_the_next_ingest(
    bare: Path, tmp_path: Path
) -> None:
    # Texts that no run before this one has encoded: those would be in the cache.
    docs = write(tmp_path / "many", {f"{n:04}.txt": f"Item {uuid4()}." for n in range(600)})
    shards = bare / "data" / "documents"
    process = subprocess.Popen(
        [*command(), "ingest", str(docs)],
        env=environment(bare),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs tests in the background has them ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not list(shards.glob("shards/documents/*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    assert "Stopped." in err
    assert "Traceback" not in err
    told = result(run(bare, "ingest", docs, "--json"))
    assert told["unchanged"] + told["added"] == told["cases"] == 600
    assert 0 < told["added"] < 600
