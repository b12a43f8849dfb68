"""CrossEncoder: a logit for each part of a passage that says if it answers a question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from casewright.errors import InputError
from casewright.stores.encoders.cross_encoder import (
    MAX_PARTS_TOKENS,
    MAX_WINDOWS,
    UNREAD_LOGIT,
    WEIGHTS,
    CrossEncoder,
    answer_logits,
    log_sum,
)
from casewright.stores.encoders.minilm import packaged_minilm
from casewright.stores.encoders.mpnet_weights import Unpacked, read_weights
from tests.support.encoders import HashingEncoder

FACTORS = "encoder.layer.0.output.factors"
NORM_BIAS = "encoder.layer.11.output.LayerNorm.bias"
QUERY = "encoder.layer.0.attention.attn.q.weight"
QUESTION = "how many processes does a worker start by default"
ANSWER = "The number of worker processes is set by --workers and defaults to the number of CPUs."
OTHERS = ["Tasks are executed by several processes at once.", "Eggs are boiled for six minutes."]
PASSAGES = [["Workers", OTHERS[0], ANSWER, OTHERS[1]], ["Kitchen", *OTHERS]]


@pytest.fixture(scope="module")
def cross_encoder() -> CrossEncoder:
    return CrossEncoder()


def test_sentence_that_answers_has_the_highest_logit(
    cross_encoder: CrossEncoder,
) -> None:
    first, second = cross_encoder.answer_logits(QUESTION, PASSAGES)
    assert [len(first), len(second)] == [3, 2]
    assert first.argmax() == 1
    assert log_sum(first) > log_sum(second) + 1


def test_passages_that_do_not_answer_have_logits_below_no_answer(
    cross_encoder: CrossEncoder,
) -> None:
    [logits] = cross_encoder.answer_logits("Who won the cup in 1998?", [PASSAGES[1]])
    assert log_sum(logits) < 0


def test_logits_do_not_depend_on_earlier_calls_or_repetitions(cross_encoder: CrossEncoder) -> None:
    first, second = CrossEncoder().answer_logits(QUESTION, PASSAGES)
    repeated = cross_encoder.answer_logits(QUESTION, [PASSAGES[1], PASSAGES[0], PASSAGES[1]])
    np.testing.assert_allclose(repeated[1], first, atol=1e-4)
    np.testing.assert_array_equal(repeated[0], repeated[2])
    np.testing.assert_allclose(repeated[0], second, atol=1e-4)


def test_long_passage_is_read_in_windows_up_to_their_maximum(cross_encoder: CrossEncoder) -> None:
    filler = [f"{OTHERS[1]} " * (MAX_PARTS_TOKENS // 7)] * (MAX_WINDOWS - 1)
    passages = [["", ""], ["Workers", *filler, ANSWER, *filler, ANSWER], ["Bare heading"]]
    empty, long, heading_only = cross_encoder.answer_logits(QUESTION, passages)
    assert empty.tolist() == [UNREAD_LOGIT]
    assert long.argmax() == len(filler)
    assert long[-1] == UNREAD_LOGIT
    assert heading_only.size == 0


@pytest.mark.parametrize("encoder", [None, HashingEncoder()])
def test_encoder_without_cross_encoder_has_no_logits(encoder: HashingEncoder | None) -> None:
    assert answer_logits(encoder, QUESTION, PASSAGES) is None


@pytest.mark.parametrize(
    "logits", [[0.0, np.nan, 0.0], [0.0], ["a", "b", "c"], [[0.0], [0.0], [0.0]], 5.0]
)
def test_wrong_logits_of_an_encoder_are_an_input_error(logits: object) -> None:
    class Broken(HashingEncoder):
        def answer_logits(self, question: str, passages: list[list[str]]) -> list[object]:
            return [logits for _ in passages]

    with pytest.raises(InputError, match="must return a finite logit for each part"):
        answer_logits(Broken(), QUESTION, PASSAGES[:1])


def test_missing_or_damaged_weights_are_an_input_error(tmp_path: Path) -> None:
    damaged = tmp_path / "w.safetensors"
    damaged.write_bytes(b"no weights")
    other = packaged_minilm() / "model.safetensors"
    for file in (damaged, tmp_path / "missing.safetensors", tmp_path, other):
        with pytest.raises(InputError, match="cannot be used"):
            CrossEncoder(file).answer_logits(QUESTION, PASSAGES)


@pytest.mark.parametrize(
    ("name", "array", "reason"),
    [
        (NORM_BIAS, np.zeros(5, np.float32), f"{NORM_BIAS} is not an array"),
        (NORM_BIAS, np.zeros(768, np.float64), f"{NORM_BIAS} is not an array"),
        (NORM_BIAS, np.full(768, np.nan, np.float32), f"{NORM_BIAS} is not finite"),
        (FACTORS, np.zeros(3072, np.float32), f"{FACTORS} is not positive"),
        ("encoder.layer.12.intermediate.dense.bias", np.zeros(3072, np.float32), "13 layers"),
        ("other", np.zeros(5, np.float32), "the array other is unknown"),
        (
            QUERY + ".lora_A",
            np.zeros((16, 768), np.float16),
            f"the array {QUERY}.lora_B is missing",
        ),
    ],
)
def test_file_with_a_wrong_array_is_an_input_error_with_the_reason(
    tmp_path: Path, name: str, array: np.ndarray[Any, Any], reason: str
) -> None:
    file = tmp_path / "w.safetensors"
    save_file({**load_file(WEIGHTS), name: array}, file)
    with pytest.raises(InputError, match=reason):
        read_weights(file)


def test_product_of_an_adapter_is_added_to_its_matrix(tmp_path: Path) -> None:
    rng, file = np.random.default_rng(0), tmp_path / "w.safetensors"
    lora_a = rng.normal(size=(16, 768)).astype(np.float16)
    lora_b = rng.normal(size=(768, 16)).astype(np.float16)
    adapter = {f"{QUERY}.lora_A": lora_a, f"{QUERY}.lora_B": lora_b}
    save_file({**load_file(WEIGHTS), **adapter}, file)
    without, weights = Unpacked(read_weights(WEIGHTS)), Unpacked(read_weights(file))
    expected = without[QUERY] + lora_b.astype(np.float32) @ lora_a.astype(np.float32)
    np.testing.assert_allclose(weights[QUERY], expected, rtol=1e-5)
    assert set(weights) == set(without)


def test_weights_that_give_infinite_states_are_an_input_error(tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    save_file({**load_file(WEIGHTS), NORM_BIAS: np.full(768, 3e38, np.float32)}, file)
    with np.errstate(all="ignore"), pytest.raises(InputError, match="not finite"):
        CrossEncoder(file).answer_logits(QUESTION, PASSAGES)
