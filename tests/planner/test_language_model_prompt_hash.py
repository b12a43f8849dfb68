"""A model that was trained with another prompt is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.planner.language_model import load_language_model
from casewright.planner.language_model.card import CARD
from casewright.planner.prompt import prompt_hash
from tests.support.tiny_adapter import save_tiny_adapter
from tests.support.tiny_mistral import save_tiny

OTHER = "0123456789abcdef"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return save_tiny(tmp_path / "base")


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """Return an adapter without a card; its folder contains its base model."""
    folder = save_tiny_adapter(tmp_path, "./base")
    (folder / CARD).unlink()
    save_tiny(folder / "base")
    return folder


def write_card(folder: Path, **card: Any) -> None:
    (folder / CARD).write_text(json.dumps(card), encoding="utf-8")


def load_error(folder: Path, **settings: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_language_model(folder, **settings)
    return str(caught.value)


def test_model_trained_with_another_prompt_is_refused_with_both_hashes(base: Path) -> None:
    write_card(base, prompt_hash=OTHER, casewright="0.0.9")
    message = load_error(base)
    for part in (str(base), OTHER, prompt_hash(), "casewright finetune train", "Casewright 0.0.9"):
        assert part in message


def test_model_with_the_current_prompt_hash_or_without_a_card_is_loaded(base: Path) -> None:
    assert load_language_model(base).name == str(base)
    write_card(base, prompt_hash=prompt_hash())
    assert load_language_model(base).name == str(base)


def test_prompt_hash_of_the_adapter_card_overrides_that_of_the_base(adapter: Path) -> None:
    write_card(adapter / "base", prompt_hash=OTHER)
    assert OTHER in load_error(adapter)
    write_card(adapter, prompt_hash=prompt_hash())
    assert load_language_model(adapter).name == str(adapter)
    write_card(adapter / "base", prompt_hash=prompt_hash())
    write_card(adapter, prompt_hash=OTHER)
    assert OTHER in load_error(adapter)
    assert OTHER in load_error(adapter / "base", adapter=adapter)


@pytest.mark.parametrize(
    ("card", "part"),
    [("{}", "prompt_hash"), ('{"prompt_hash": 7}', "prompt_hash"), ("[]", "object"), ("{", "read")],
    ids=["no hash", "a number", "a list", "half"],
)
def test_unreadable_model_card_raises_input_error(base: Path, card: str, part: str) -> None:
    (base / CARD).write_text(card, encoding="utf-8")
    message = load_error(base)
    assert part in message
    assert str(base) in message


def test_base_beside_the_adapter_is_preferred_to_one_in_the_working_directory(
    adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "base").mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    assert load_language_model(adapter).name == str(adapter)
