"""The commands that train a planner."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from casewright.planner import AnnotatedQuery, Reader
from tests.serve.helpers import Output, new_home, one_line_error, result, run
from tests.support.readers import toy_queries

#: Training is slow on a busy machine.
pytestmark = pytest.mark.timeout(600)


def write_queries(file: Path, queries: Sequence[AnnotatedQuery]) -> Path:
    records = [{**query.record.model_dump(), "plan": str(query.plan)} for query in queries]
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("finetune")


@pytest.fixture(scope="module")
def home(folder: Path) -> Iterator[Path]:
    """Yield a home without stores; use one thread, since other cores may be busy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield new_home(folder / "home")


@pytest.fixture(scope="module")
def completed(home: Path, folder: Path) -> Output:
    source = write_queries(folder / "queries.jsonl", toy_queries()[:40])
    target = folder / "new" / "reader"
    options = ("--input", source, "--output", target, "--epochs", "1", "--seed", "5", "--json")
    return run(home, "finetune", "reader", *options)


def test_finetune_reader_prints_folder_epochs_seed_and_number_of_queries(
    completed: Output, folder: Path
) -> None:
    report: dict[str, Any] = result(completed)
    assert report["folder"] == str(folder / "new" / "reader")
    assert (report["epochs"], report["seed"], report["queries"]) == (1, 5, 40)
    assert report["forms"] >= 2
    assert completed.stderr == ""


def test_finetune_reader_writes_a_reader_that_opens(completed: Output, folder: Path) -> None:
    target = folder / "new" / "reader"
    assert {file.name for file in target.iterdir()} == {"reader.json", "reader.safetensors"}
    reader = Reader(target)
    assert len(reader.templates) == result(completed)["forms"]
    assert reader.card.training["epochs"] == 1


def test_finetune_reader_refuses_three_queries_and_writes_no_folder(
    home: Path, tmp_path: Path
) -> None:
    source = write_queries(tmp_path / "few.jsonl", toy_queries()[:3])
    completed = run(home, "finetune", "reader", "--input", source, "--output", tmp_path / "reader")
    assert "3 queries" in one_line_error(completed)
    assert completed.stdout == ""
    assert not (tmp_path / "reader").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "reader", "--input", "none.jsonl"], "none.jsonl"),
        (["--output", "reader", "--input", "."], "cannot be read"),
        (["--output", "reader", "--domain", "nope"], "Domains are:"),
        (["--output", "reader", "--epochs", "0"], "--epochs"),
        ([], "--output"),
    ],
)
def test_invalid_options_of_finetune_reader_print_an_error_of_one_line(
    home: Path, arguments: list[str], message: str
) -> None:
    assert message in one_line_error(run(home, "finetune", "reader", *arguments))


def test_finetune_reader_does_not_overwrite_its_input(home: Path, tmp_path: Path) -> None:
    source = write_queries(tmp_path / "queries.jsonl", toy_queries()[:40])
    completed = run(
        home, "finetune", "reader", "--input", source, "--output", source, "--epochs", "1"
    )
    assert str(source) in one_line_error(completed)
    assert source.read_text(encoding="utf-8").count("\n") == 40
