"""The commands that train a planner."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from casewright.planner import AnnotatedQuery, Reader
from tests.serve.helpers import Done, new_home, one_line_error, result, run
from tests.support.readers import toy_queries

#: Training takes long where other work is going on.
pytestmark = pytest.mark.timeout(600)


def written(file: Path, queries: Sequence[AnnotatedQuery]) -> Path:
    records = [{**query.record.model_dump(), "plan": str(query.plan)} for query in queries]
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("finetune")


@pytest.fixture(scope="module")
def home(folder: Path) -> Iterator[Path]:
    """A home without stores, since training needs none; one thread, since cores may be busy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield new_home(folder / "home")


@pytest.fixture(scope="module")
def done(home: Path, folder: Path) -> Done:
    source = written(folder / "queries.jsonl", toy_queries()[:40])
    target = folder / "new" / "reader"
    chosen = ("--input", source, "--output", target, "--epochs", "1", "--seed", "5", "--json")
    return run(home, "finetune", "reader", *chosen)


def test_finetune_reader_prints_folder_epochs_seed_and_number_of_queries(
    done: Done, folder: Path
) -> None:
    told: dict[str, Any] = result(done)
    assert told["folder"] == str(folder / "new" / "reader")
    assert (told["epochs"], told["seed"], told["queries"]) == (1, 5, 40)
    assert told["forms"] >= 2
    assert done.stderr == ""


def test_finetune_reader_writes_a_reader_that_can_be_opened(done: Done, folder: Path) -> None:
    target = folder / "new" / "reader"
    assert {file.name for file in target.iterdir()} == {"reader.json", "reader.safetensors"}
    reader = Reader(target)
    assert len(reader.templates) == result(done)["forms"]
    assert reader.card.training["epochs"] == 1


def test_finetune_reader_refuses_three_queries_and_writes_no_folder(
    home: Path, tmp_path: Path
) -> None:
    source = written(tmp_path / "few.jsonl", toy_queries()[:3])
    done = run(home, "finetune", "reader", "--input", source, "--output", tmp_path / "reader")
    assert "3 queries" in one_line_error(done)
    assert done.stdout == ""
    assert not (tmp_path / "reader").exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--output", "reader", "--input", "none.jsonl"], "none.jsonl"),
        (["--output", "reader", "--input", "."], "cannot be read"),
        (["--output", "reader", "--domain", "nope"], "Domains are:"),
        (["--output", "reader", "--epochs", "0"], "--epochs"),
        ([], "--output"),
    ],
)
def test_invalid_options_of_finetune_reader_print_an_error_of_one_line(
    home: Path, arguments: list[str], word: str
) -> None:
    assert word in one_line_error(run(home, "finetune", "reader", *arguments))


def test_finetune_reader_leaves_a_file_given_as_output_unchanged(
    home: Path, tmp_path: Path
) -> None:
    source = written(tmp_path / "queries.jsonl", toy_queries()[:40])
    done = run(home, "finetune", "reader", "--input", source, "--output", source, "--epochs", "1")
    assert str(source) in one_line_error(done)
    assert source.read_text(encoding="utf-8").count("\n") == 40
