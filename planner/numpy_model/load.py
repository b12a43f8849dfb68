"""Loading a small Mistral without torch and transformers."""

from __future__ import annotations

from pathlib import Path

from casewright.errors import InputError
from casewright.planner.language_model.card import check_card
from casewright.planner.language_model.source import CONFIG, Source, read_json
from casewright.planner.numpy_model.model import NumpyModel
from casewright.planner.numpy_model.network import MistralForm, NumpyMistral
from casewright.planner.numpy_model.tokenizer import FileTokenizer
from casewright.planner.numpy_model.weights import read_weights

_GENERATION = "generation_config.json"


def can_compute(folder: Path) -> bool:
    """Say whether a model's network is one that NumPy computes here, whatever its size.

    Raises:
        InputError: Its configuration cannot be read.
    """
    return MistralForm.of(read_json(folder / CONFIG)) is not None


def load_numpy_model(folder: Path, title: str | None = None) -> NumpyModel:
    """Load a model to plan with.

    Args:
        folder: A Mistral's, as ``save_pretrained`` writes it.
        title: Its name; by default the folder's.

    Raises:
        InputError: It is of another network, is damaged, or was trained with another form of the
            prompt; or its tokenizer or chat template cannot be used.
    """
    check_card(Source(folder))
    config = read_json(folder / CONFIG)
    form = MistralForm.of(config)
    if form is None:
        raise InputError(
            f"{str(folder)!r} is no network that NumPy computes here. Load it by "
            "load_language_model."
        )
    network = NumpyMistral(form, read_weights(folder))
    generation = folder / _GENERATION
    ends = [config.get("eos_token_id")]
    if generation.is_file():
        ends.insert(0, read_json(generation).get("eos_token_id"))
    return NumpyModel(title or str(folder), network, FileTokenizer(folder), ends)
