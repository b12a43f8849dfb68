"""Weights in 8 bits change the outputs of a model only by rounding."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.planner import ModelPlanner, PlanRequest
from casewright.planner.language_model import LanguageModel, load_language_model
from casewright.planner.language_model.device import find_dtype
from tests.planner.helpers import SHOP
from tests.support.tiny_mistral import save_tiny

torch: Any = import_module("torch")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("model") / "m", 3, hidden=64, initializer_range=0.1)


def logits(model: LanguageModel, tokens: int) -> Any:
    with torch.inference_mode():
        return model.network(torch.arange(5, 5 + tokens)[None]).logits.float()


@pytest.mark.parametrize("tokens", [1, 8, 40], ids=["one", "few", "a prompt"])
def test_int8_logits_differ_from_exact_ones_only_by_rounding(folder: Path, tokens: int) -> None:
    exact = logits(load_language_model(folder), tokens)
    rounded = logits(load_language_model(folder, dtype="int8"), tokens)
    # bfloat16 has 8 bits of mantissa; so have the weights.
    assert (exact - rounded).abs().max() < 0.05 * exact.abs().max()
    assert not torch.equal(exact, rounded)


def test_a_model_with_8_bit_weights_writes_valid_plans(folder: Path) -> None:
    model = load_language_model(folder, dtype="int8")
    request = PlanRequest("Where is my blue tent?", SHOP, max_steps=2)
    result = ModelPlanner(model).plan(request)
    assert not result.fallback
    request.validate(result.plan)


def test_models_of_different_dtypes_have_different_identities(folder: Path) -> None:
    identities = {load_language_model(folder, dtype=d).identity for d in (None, "bfloat16", "int8")}
    assert len(identities) == 3


def test_int8_weights_are_refused_on_cuda() -> None:
    with pytest.raises(InputError, match="for the CPU, not for cuda"):
        find_dtype("int8", torch.device("cuda", 0))
