"""A new base model: its tokenizer restores any text, and equal settings give equal files."""

from __future__ import annotations

from pathlib import Path

from casewright.finetune.recipe.training_section import NewModelSection
from casewright.finetune.training.base import make_base, train_tokenizer
from casewright.planner.prompt import CONSTRAINTS
from tests.support.trained import plan_examples

SETTINGS = NewModelSection(
    hidden=32, layers=1, heads=2, kv_heads=1, intermediate=32, vocabulary=600, positions=2048
)


def test_trained_tokenizer_restores_any_text() -> None:
    tokenizer = train_tokenizer(["a prompt\n"], 300)
    for text in (
        "s1 = f(x=question)\n\n",
        "naïve 漢字 \u202e 🦊",
        "  two  spaces\t\n",
        CONSTRAINTS,
    ):
        assert tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]) == text


def test_make_base_gives_the_same_files_for_the_same_settings(tmp_path: Path) -> None:
    for name in "ab":
        make_base(SETTINGS, plan_examples()[:10], 3, tmp_path / name)
    for file in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
