from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.serve.helpers import one_line_error, run

LINE = json.dumps({"id": "a", "query": "Where is my tablet?"}) + "\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "queries.jsonl"
    file.write_text(LINE, encoding="utf-8")
    return file


def link(source: Path) -> Path:
    other = source.with_name("link.jsonl")
    other.symlink_to(source)
    return other


def hard_link(source: Path) -> Path:
    other = source.with_name("hard.jsonl")
    os.link(source, other)
    return other


@pytest.mark.parametrize("named", [lambda source: source, link, hard_link])
def test_output_that_is_the_input_file_is_refused_and_leaves_it_unchanged(
    home: Path, source: Path, named: Callable[[Path], Path]
) -> None:
    done = run(home, "plan", "--input", source, "--output", named(source))
    assert "--output is the --input file" in one_line_error(done)
    assert source.read_text(encoding="utf-8") == LINE


def test_missing_input_is_named_and_no_output_made(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "plans.jsonl"
    done = run(home, "plan", "--input", tmp_path / "none.jsonl", "--output", target)
    assert "none.jsonl" in one_line_error(done)
    assert not target.exists()


def test_folder_as_input_is_refused(home: Path, tmp_path: Path) -> None:
    assert str(tmp_path) in one_line_error(run(home, "plan", "--input", tmp_path))


@pytest.mark.parametrize("place", ["none/plans.jsonl", "folder"])
def test_output_that_cannot_be_written_is_named(home: Path, source: Path, place: str) -> None:
    (source.parent / "folder").mkdir()
    target = source.parent / place
    done = run(home, "plan", "--input", source, "--output", target)
    said = one_line_error(done)
    assert str(target) in said
    assert "cannot be written" in said
    assert source.read_text(encoding="utf-8") == LINE


def test_plan_reports_a_full_disk_in_an_error_of_one_line(home: Path, source: Path) -> None:
    assert Path("/dev/full").exists()
    done = run(home, "plan", "--input", source, "--output", "/dev/full")
    assert "cannot be written" in one_line_error(done)


def test_empty_input_makes_an_empty_output(home: Path, source: Path) -> None:
    source.write_bytes(b"\n \n")
    target = source.with_name("plans.jsonl")
    done = run(home, "plan", "--input", source, "--output", target)
    assert (done.returncode, done.stdout) == (0, "")
    assert target.read_bytes() == b""
