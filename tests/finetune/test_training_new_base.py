"""What a new model starts from: its tokenizer, its vectors, its heads."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from casewright.finetune.recipe.training_section import NewModelSection
from casewright.finetune.training.base import make_base
from casewright.finetune.training.plan_tokenizer import prompt_pieces, train_tokenizer
from casewright.planner.language_model import LanguageModel, load_language_model
from casewright.planner.prompt import CONSTRAINTS, ROLE
from tests.support.trained import plan_examples

SMALL: dict[str, Any] = {"hidden": 128, "layers": 2, "heads": 2, "kv_heads": 1, "intermediate": 128}
SETTINGS = NewModelSection(
    **SMALL,
    vocabulary=3072,
    positions=2048,
    embeddings="encoder",
    copying_heads=True,
    rope_base=1e6,
)
WORDS = (" kettle", " lamp", " order", " review", " price", " socks", " page", " red", " blue")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    folder: Path = tmp_path_factory.mktemp("base") / "base"
    make_base(SETTINGS, plan_examples(), 0, folder)
    return load_language_model(str(folder))


def test_what_stands_in_every_prompt_and_plan_is_one_token(base: LanguageModel) -> None:
    pieces = (
        ROLE,
        CONSTRAINTS,
        "s1 = ",
        "\ns2 = ",
        "=s1.",
        "\nPlan:\n",
        "\n\nQuestion: ",
        "find",
    )
    for piece in pieces:
        tokens = base.tokenizer(piece, add_special_tokens=False)["input_ids"]
        assert len(tokens) == 1, piece


def test_any_text_is_written_and_read_back_by_the_tokenizer() -> None:
    tokenizer = train_tokenizer(prompt_pieces(["a prompt\n"]), 300, plans=True)
    for text in (
        "s1 = f(x=question)\n\n",
        "naïve 漢字 \u202e 🦊",
        "  two  spaces\t\n",
        CONSTRAINTS,
    ):
        assert tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]) == text


def test_words_that_mean_the_same_start_alike(base: LanguageModel) -> None:
    torch: Any = import_module("torch")
    vectors = base.network.get_input_embeddings().weight[:, 1:]

    def likeness(one: str, other: str) -> float:
        rows = [
            vectors[base.tokenizer(text, add_special_tokens=False)["input_ids"]].mean(0)
            for text in (one, other)
        ]
        return float(torch.nn.functional.cosine_similarity(*rows, dim=0))

    assert likeness("order", " order") > 0.8
    assert likeness("order", " order") > likeness("order", " review") + 0.2


def test_heads_copy_what_followed_a_token_before_any_training(base: LanguageModel) -> None:
    torch: Any = import_module("torch")
    tokens = [base.tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in WORDS]
    tokens = list(dict.fromkeys(tokens))
    with torch.no_grad():
        logits = base.network(torch.tensor([tokens * 2])).logits[0]
    # From the second time a token is there, what followed it is known.
    guessed = logits[len(tokens) : -1].argmax(-1).tolist()
    right = sum(a == b for a, b in zip(guessed, tokens[1:], strict=True))
    assert right >= 4


def test_the_same_settings_make_the_same_base(tmp_path: Path) -> None:
    for name in "ab":
        make_base(SETTINGS, plan_examples()[:10], 3, tmp_path / name)
    for file in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.parametrize("other", [{"layers": 1}, {"tied": False}, {"heads": 1}], ids=str)
def test_copying_heads_in_a_network_that_cannot_hold_them_are_refused(
    other: dict[str, Any],
) -> None:
    with pytest.raises(ValidationError, match="copying_heads"):
        NewModelSection(**{**SMALL, "copying_heads": True, **other})
