"""`casewright check` finds damaged stores, and `casewright repair` keeps their readable cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.serve.helpers import new_home, one_line_error, result, run
from tests.support.small_disk import filled, small_disk

NOTES = {
    "mill.md": "# The mill\n\nThe spindle is oiled every Monday.\n",
    "saw.md": "# Saw\n\nIt cuts.\n",
}


@pytest.fixture
def ingested(tmp_path: Path) -> Path:
    home = new_home(tmp_path / "home")
    (home / "notes").mkdir()
    for name, text in NOTES.items():
        (home / "notes" / name).write_text(text)
    result(run(home, "ingest", "notes", "--json"))
    return home


def vector_file(home: Path) -> Path:
    (file,) = (home / "data/documents").glob("shards/documents/shard/segments/*/*/vectors/chunk*")
    return file


def damage_vector(home: Path) -> None:
    """Overwrite the second of the two vectors with zeros."""
    with vector_file(home).open("r+b") as stream:
        stream.seek(769 * 4)
        stream.write(bytes(769 * 4))


def test_check_and_repair_report_undamaged_stores(ingested: Path) -> None:
    report = result(run(ingested, "check", "--json"))
    (store,) = report["stores"]
    assert (store["collection"], store["cases"], store["damage"]) == ("documents", 2, "")
    assert run(ingested, "repair").stdout.startswith("No store is damaged.")


def test_damaged_store_is_refused_until_it_is_repaired(ingested: Path) -> None:
    damage_vector(ingested)
    assert "damaged" in one_line_error(run(ingested, "ask", "--domain", "documents", "which saw"))
    assert "casewright repair" in one_line_error(run(ingested, "check"))
    (store,) = result(run(ingested, "repair", "--json"))["stores"]
    assert (store["cases"], store["lost"], store["next"]) == (1, 1, "casewright ingest PATH")
    assert result(run(ingested, "check", "--json"))["damaged"] == 0
    assert result(run(ingested, "ingest", "notes", "--json"))["added"] == 1
    assert result(run(ingested, "check", "--json"))["stores"][0]["cases"] == 2


def test_repair_writes_the_text_of_lost_cases_to_a_file(ingested: Path) -> None:
    damage_vector(ingested)
    completed = run(ingested, "repair", ingested / "data/documents")
    assert "1 cases are kept, 1 are lost" in completed.stdout
    (line,) = (ingested / "data/documents/lost-documents.jsonl").read_text().splitlines()
    assert json.loads(line)["solution"] in [text.strip() for text in NOTES.values()]


def test_check_and_repair_of_a_folder_without_a_store_print_one_line(ingested: Path) -> None:
    for command in ("check", "repair"):
        assert "notes" in one_line_error(run(ingested, command, "notes"))


def test_ingest_and_ask_name_the_free_space_when_the_disk_is_full(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64) as disk:
        home = new_home(disk / "home")
        (home / "notes").mkdir()
        (home / "notes" / "mill.md").write_text(NOTES["mill.md"])
        filled(disk, 2_000_000)
        assert "MB free" in one_line_error(run(home, "ingest", "notes"))
        (home / "cache").unlink()
        completed = run(home, "ask", "where is my parcel")
        assert completed.returncode == 2
        assert "MB free" in completed.stderr.splitlines()[-1]
