from __future__ import annotations

from pathlib import Path

import pytest

from tests.serve.helpers import new_home, one_line_error, result, run
from tests.support.tiny_bert import save_tiny_bert


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = ("oil", "the", "spindle", "weekly", "how", "often", "mill")
    return save_tiny_bert(tmp_path_factory.mktemp("models") / "tiny-bert", words)


def test_option_encoder_ingests_and_asks_documents_in_a_separate_store(
    tmp_path: Path, model: Path
) -> None:
    home = new_home(tmp_path / "home")
    (tmp_path / "care.md").write_text("# Mill\n\nOil the spindle weekly.\n")
    options = ("--encoder", model, "--json")
    report = result(run(home, "ingest", tmp_path / "care.md", *options))
    assert report["added"] == 1
    assert "tiny-bert" in report["location"]
    question = ("how often oil the mill", "--domain", "documents")
    answer = result(run(home, "ask", *question, *options))
    assert "Oil the spindle weekly" in answer["text"]
    # The packaged encoder has its own store, which is empty.
    assert "casewright ingest" in one_line_error(run(home, "ask", *question))


def test_encoder_that_cannot_be_loaded_prints_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    completed = run(new_home(tmp_path / "home"), "ask", "hello", "--encoder", tmp_path / "empty")
    assert "could not be loaded" in one_line_error(completed)
