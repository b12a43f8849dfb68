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


def make_link(source: Path) -> Path:
    path = source.with_name("link.jsonl")
    path.symlink_to(source)
    return path


def make_hard_link(source: Path) -> Path:
    path = source.with_name("hard.jsonl")
    os.link(source, path)
    return path


@pytest.mark.parametrize("make_path", [lambda source: source, make_link, make_hard_link])
def test_plan_refuses_to_overwrite_its_input(
    home: Path, source: Path, make_path: Callable[[Path], Path]
) -> None:
    completed = run(home, "plan", "--input", source, "--output", make_path(source))
    assert "--output is the --input file" in one_line_error(completed)
    assert source.read_text(encoding="utf-8") == LINE


def test_plan_names_a_missing_input_and_writes_no_output(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "plans.jsonl"
    completed = run(home, "plan", "--input", tmp_path / "none.jsonl", "--output", target)
    assert "none.jsonl" in one_line_error(completed)
    assert not target.exists()


def test_plan_refuses_a_folder_as_input(home: Path, tmp_path: Path) -> None:
    assert str(tmp_path) in one_line_error(run(home, "plan", "--input", tmp_path))


@pytest.mark.parametrize("name", ["none/plans.jsonl", "folder"])
def test_plan_names_an_output_that_cannot_be_written(home: Path, source: Path, name: str) -> None:
    (source.parent / "folder").mkdir()
    target = source.parent / name
    completed = run(home, "plan", "--input", source, "--output", target)
    message = one_line_error(completed)
    assert str(target) in message
    assert "cannot be written" in message
    assert source.read_text(encoding="utf-8") == LINE


def test_plan_reports_a_full_disk_in_an_error_of_one_line(home: Path, source: Path) -> None:
    assert Path("/dev/full").exists()
    completed = run(home, "plan", "--input", source, "--output", "/dev/full")
    assert "cannot be written" in one_line_error(completed)


def test_empty_input_makes_an_empty_output(home: Path, source: Path) -> None:
    source.write_bytes(b"\n \n")
    target = source.with_name("plans.jsonl")
    completed = run(home, "plan", "--input", source, "--output", target)
    assert (completed.returncode, completed.stdout) == (0, "")
    assert target.read_bytes() == b""
