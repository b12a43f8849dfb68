"""Training of an encoder on the texts of a domain's cases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from casewright.errors import InputError
from casewright.finetune.encoder_training import EncoderSettings, case_pairs, train_encoder
from casewright.stores import Case
from casewright.stores.encoders.minilm import MiniLMEncoder
from casewright.stores.encoders.sources import named_encoder
from tests.serve.helpers import run
from tests.stores.helpers import note_schema

TOWNS = ("Kiel", "Bonn", "Ulm", "Trier", "Jena", "Essen", "Worms", "Aachen", "Lingen", "Emden")


def test_case_pairs_pair_the_shortest_text_with_each_other_text_once() -> None:
    supports = ("Member Oduya sat there.", "Member Oduya")
    cases = [Case({"question": "Who sat?", "support": text}, "Member Oduya") for text in supports]
    assert [list(case_pairs(note_schema(), [case])) for case in cases] == [
        [("Who sat?", "Member Oduya"), ("Who sat?", "Member Oduya sat there.")],
        [("Who sat?", "Member Oduya")],
    ]


def test_train_encoder_refuses_too_few_pairs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="1 pairs of texts, and 8"):
        train_encoder([("a", "b")], tmp_path / "encoder")


@pytest.mark.slow
def test_trained_encoder_brings_texts_of_one_case_nearer(tmp_path: Path) -> None:
    pairs = [(f"Where is number {n}?", f"The {n}th inn is in {t}.") for n, t in enumerate(TOWNS)]
    target = tmp_path / "encoder"
    figures = train_encoder(pairs, target, EncoderSettings(epochs=3, batch=5, rate=1e-3))
    assert figures["steps"] == 6

    def margin(encoder: object) -> float:
        questions, texts = (encoder.embed(list(part)) for part in zip(*pairs, strict=True))  # type: ignore[attr-defined]
        cosines = questions @ texts.T
        return float(np.mean(np.diag(cosines)) - np.mean(cosines))

    assert margin(named_encoder(str(target))) > margin(MiniLMEncoder())


def test_finetune_encoder_command_refuses_an_existing_folder(tmp_path: Path) -> None:
    process = run(tmp_path, "finetune", "encoder", "--domain", "legal", "--output", tmp_path)
    assert process.returncode == 2
    assert "is there already" in process.stderr
