"""Training of the cross-encoder: groups of passages, the training, and its errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import save_file

from casewright.errors import InputError
from casewright.finetune.cross_encoder.groups import (
    Group,
    QuotedQuestion,
    make_groups,
    read_questions,
)
from casewright.finetune.cross_encoder.training import CrossEncoderSettings, train_cross_encoder
from casewright.stores.encoders.cross_encoder import WEIGHTS, CrossEncoder, log_sum
from casewright.stores.encoders.mpnet import MPNet
from casewright.stores.encoders.mpnet_weights import Unpacked, read_weights
from casewright.stores.encoders.onnx_graph import bits_for_cpu

UPPER_LAYER = re.compile(r"encoder\.layer\.[1-9]")
TEXTS = ["# Mill\n\nIt grinds corn. It has `two` stones.", "# Bakery\n\nIt has two ovens."]


def group_of(quote: str) -> Group:
    question = QuotedQuestion(tree="town", question="How many stones?", quote=quote)
    [group] = make_groups([question], lambda _: dict(zip(TEXTS, (0.9, 0.5), strict=True)))
    return group


def test_group_marks_the_parts_that_hold_the_quote_without_its_marks() -> None:
    group = group_of("It has two  stones")
    assert group.passages == [
        ["Mill", "It grinds corn.", "It has `two` stones."],
        ["Bakery", "It has two ovens."],
    ]
    assert group.scores == [0.9, 0.5]
    assert group.gold == {(0, 1)}
    assert group_of("it has two").gold == {(0, 1), (1, 0)}
    assert (group_of("three stones").gold, group_of("three stones").is_unanswerable) == (
        set(),
        False,
    )
    assert group_of("").is_unanswerable


def test_question_about_a_missing_tree_is_an_input_error_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "town").mkdir()
    lines = [{"tree": "town", "question": "q", "quote": "a"}, {"tree": "sea", "question": "q"}]
    file = tmp_path / "questions.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with pytest.raises(InputError, match=r"line 2: the tree 'sea' is no folder"):
        read_questions(tmp_path)


def colour_group(tree: str, item: int, *, answerable: bool = True) -> Group:
    passages = [
        ["Other", "Nothing is written here."],
        ["Items", f"Item {item} stands in the hall.", f"Item {item} is red and large."],
    ]
    question = f"what colour is item {item}" if answerable else "who won the cup"
    gold = frozenset({(1, 1)}) if answerable else frozenset()
    return Group(tree, question, passages, [0.7, 0.7], gold, not answerable)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the packaged weights with one layer."""
    weights = {name: a for name, a in read_weights(WEIGHTS).items() if not UPPER_LAYER.match(name)}
    file = tmp_path_factory.mktemp("weights") / "small.safetensors"
    save_file(weights, file)
    return file


def test_training_learns_which_part_answers_questions_about_a_held_out_tree(
    tmp_path: Path, small: Path
) -> None:
    groups = [colour_group("a", item, answerable=item % 4 != 0) for item in range(16)]
    # Edge cases: a passage that is always an answer, an empty part, and no passages at all.
    groups += [Group("a", "q", [["T", "\u200b", "Red."]], [0.7], frozenset({(0, 1)}), False)]
    groups += [Group("a", "q", [], [], frozenset(), True)]
    groups += [colour_group("b", 77), colour_group("b", 78, answerable=False)]
    settings = CrossEncoderSettings(epochs=8, batch=4, rate=3e-4)
    target = tmp_path / "weights.safetensors"
    figures = train_cross_encoder(
        groups, target, settings, base=small, held_out=["b"], device="cpu"
    )
    assert (figures["right part"], figures["AUC of answerable"]) == (1.0, 1.0)
    # The first passage, which a search without the cross-encoder would take, is always wrong.
    assert figures["first passage"] == 0.0
    # Sixteen bits keep the small changes of a training.
    name = "encoder.layer.0.attention.attn.q.weight"
    changes = Unpacked(read_weights(target))[name] - Unpacked(read_weights(small))[name]
    assert (changes != 0).mean() > 0.9
    held_out = groups[-2]
    logits = CrossEncoder(target).answer_logits(held_out.question, held_out.passages)
    assert logits[1].argmax() == 1
    assert log_sum(logits[1]) > log_sum(logits[0])


def test_training_without_an_answer_to_train_on_is_an_input_error(tmp_path: Path) -> None:
    groups = [colour_group("a", 1), colour_group("b", 2, answerable=False)]
    with pytest.raises(InputError, match="No question to train on"):
        train_cross_encoder(groups, tmp_path / "w", CrossEncoderSettings(), held_out=["a"])


def test_missing_weights_to_begin_with_are_an_input_error(tmp_path: Path) -> None:
    groups, missing = [colour_group("a", 1)], tmp_path / "missing.safetensors"
    with pytest.raises(InputError, match="cannot be used"):
        train_cross_encoder(groups, tmp_path / "w", CrossEncoderSettings(), base=missing)


def test_held_out_tree_without_questions_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="held-out tree 'c'"):
        train_cross_encoder(
            [colour_group("a", 1)], tmp_path / "w", CrossEncoderSettings(), held_out=["c"]
        )


def test_states_are_those_of_transformers_and_nearly_so_in_integers(small: Path) -> None:
    ids = [0, *range(2000, 2150), 2]
    weights = read_weights(small)
    config = transformers.MPNetConfig(
        num_hidden_layers=1, layer_norm_eps=1e-5, max_position_embeddings=514
    )
    network = transformers.MPNetModel(config, add_pooling_layer=False).eval()
    tensors = {name: torch.from_numpy(array) for name, array in Unpacked(weights).items()}
    network.load_state_dict(tensors, strict=False)
    with torch.no_grad():
        expected = network(torch.tensor([ids])).last_hidden_state[0].numpy()
    np.testing.assert_allclose(MPNet(weights).read(ids), expected, atol=1e-4)
    error = np.linalg.norm(MPNet(weights, bits_for_cpu()).read(ids) - expected)
    assert error < 0.1 * np.linalg.norm(expected)
