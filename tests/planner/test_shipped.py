"""The language model that ships: found, loaded and refused by its card; within its size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from casewright.errors import InputError
from casewright.finetune.ship import FOLDER_BYTES, SHARD_BYTES
from casewright.planner.language_model import LanguageModel
from casewright.planner.numpy_model import NumpyModel
from casewright.planner.plan_cases import EXAMPLES
from casewright.planner.prompt_hash import prompt_hash
from casewright.planner.shipped import (
    FOLDER,
    is_shipped,
    load_shipped,
    shipped_examples,
    shipped_planner,
)
from tests.support.tiny_mistral import save_tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = save_tiny(tmp_path_factory.mktemp("model"))
    with_card(made, prompt_hash=prompt_hash(), examples=3)
    return made


def with_card(folder: Path, **card: object) -> None:
    (folder / "casewright.json").write_text(json.dumps(card), encoding="utf-8")


def test_it_is_found_by_its_card_and_shown_as_many_plan_cases_as_that_says(folder: Path) -> None:
    assert shipped_planner(folder) == folder
    assert is_shipped(folder)
    assert shipped_examples(folder) == 3


def test_a_card_without_a_number_of_plan_cases_shows_the_usual_number(tmp_path: Path) -> None:
    with_card(tmp_path, prompt_hash=prompt_hash())
    assert shipped_examples(tmp_path) == EXAMPLES


def test_numpy_computes_it_unless_other_numbers_are_asked_for(folder: Path) -> None:
    assert isinstance(load_shipped(folder), NumpyModel)
    model = load_shipped(folder, dtype="bfloat16")
    assert isinstance(model, LanguageModel)
    assert {str(part.dtype) for part in model.network.parameters()} == {"torch.bfloat16"}
    assert model.name == load_shipped(folder).name == "mistral"


def test_where_it_is_not_there_the_error_says_how_it_is_made(tmp_path: Path) -> None:
    assert not is_shipped(tmp_path)
    for ask in (shipped_planner, shipped_examples, load_shipped):
        with pytest.raises(InputError, match=r"is not in this installation.*finetune ship"):
            ask(tmp_path)


def test_one_that_was_trained_with_another_prompt_is_refused(tmp_path: Path) -> None:
    save_tiny(tmp_path)
    with_card(tmp_path, prompt_hash="another")
    with pytest.raises(InputError, match="another form of the prompt"):
        load_shipped(tmp_path, device="cpu")


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the model is not made yet")
def test_what_ships_is_small_and_safe_and_can_be_loaded() -> None:
    sizes = {file.name: file.stat().st_size for file in FOLDER.iterdir()}
    assert sum(sizes.values()) <= FOLDER_BYTES
    assert max(sizes.values()) <= SHARD_BYTES
    assert {Path(name).suffix for name in sizes} <= {
        ".json",
        ".jsonl",
        ".md",
        ".jinja",
        ".safetensors",
    }
    assert load_shipped(device="cpu").name == "mistral"
