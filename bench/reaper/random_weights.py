"""The same network with random weights: what the grammar and the plan cases do by themselves."""

from __future__ import annotations

from copy import deepcopy
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel


def random_twin(model: LanguageModel, seed: int) -> LanguageModel:
    """Return a model of the same architecture and tokenizer, its weights drawn anew.

    Args:
        model: Whose form it has.
        seed: Draws the weights; the same ones for the same seed.
    """
    import torch

    from casewright.planner.language_model import LanguageModel

    transformers: Any = import_module("transformers")
    # Drawn on the CPU, whose numbers are the same wherever the twin then runs.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = transformers.AutoModelForCausalLM.from_config(
            deepcopy(model.network.config),
            dtype=model.network.dtype,
            attn_implementation=model.network.config._attn_implementation,
        )
    name = f"random weights, seed {seed}"
    return LanguageModel(name, network.to(model.device), model.tokenizer)
