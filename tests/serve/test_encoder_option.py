from __future__ import annotations

from pathlib import Path

import pytest

from tests.serve.helpers import new_home, one_line_error, result, run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of 32 numbers, saved as sentence-transformers would find it on a hub."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "oil",
        "the",
        "spindle",
        "weekly",
        "how",
        "often",
        "mill",
    ]
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizer(vocab={word: i for i, word in enumerate(words)}).save_pretrained(folder)
    return folder


def test_documents_are_ingested_and_asked_with_a_named_encoder_in_a_place_of_its_own(
    tmp_path: Path, model: Path
) -> None:
    home = new_home(tmp_path / "home")
    (tmp_path / "care.md").write_text("# Mill\n\nOil the spindle weekly.\n")
    given = ("--encoder", model, "--json")
    told = result(run(home, "ingest", tmp_path / "care.md", *given))
    assert told["added"] == 1
    assert "tiny-bert" in told["location"]
    question = ("how often oil the mill", "--domain", "documents")
    answer = result(run(home, "ask", *question, *given))
    assert "Oil the spindle weekly" in answer["text"]
    # The packaged encoder's place is another, and nothing was ingested there.
    assert "casewright ingest" in one_line_error(run(home, "ask", *question))


def test_an_encoder_that_cannot_be_loaded_is_a_users_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = run(new_home(tmp_path / "home"), "ask", "hello", "--encoder", tmp_path / "empty")
    assert "could not be loaded" in one_line_error(done)
