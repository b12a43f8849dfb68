"""Layers of a network by their names, as a recipe tells which of them are trained."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from casewright.errors import InputError
from casewright.finetune.recipe.training_rules import shared_layer
from casewright.finetune.recipe.training_section import LoraSection


def check_layers(config: Any, base: str, lora: LoraSection) -> None:
    """Look whether a network has the layers that a recipe names; no weights are made for it.

    PEFT passes over a name in ``modules_to_save`` that there is not.

    Args:
        config: The network's, of transformers.
        base: The network's name.
        lora: The recipe's section.

    Raises:
        InputError: It lacks one, one cannot have an adapter, or is shared with another.
    """
    import torch

    transformers: Any = import_module("transformers")
    if config.tie_word_embeddings and (same := shared_layer(lora)):
        raise InputError(
            f"lora.modules_to_save holds {same!r}, which {base!r} shares between reading and "
            f"writing. Leave {same!r} out."
        )
    with torch.device("meta"):
        network = transformers.AutoModelForCausalLM.from_config(config)
    matrices, all_layers = [], []
    for name, layer in network.named_modules():
        if name and not any(layer.children()) and any(True for _ in layer.parameters()):
            all_layers.append(name)
            if layer.weight.dim() == 2:
                matrices.append(name)
    targets = () if isinstance(lora.target_modules, str) else lora.target_modules
    _check("lora.target_modules", targets, matrices, base)
    _check("lora.modules_to_save", lora.modules_to_save, all_layers, base)


def _check(field: str, named: Iterable[str], layers: list[str], base: str) -> None:
    ends = list(dict.fromkeys(layer.rpartition(".")[2] for layer in layers))
    for name in named:
        if not any(f".{layer}".endswith(f".{name}") for layer in layers):
            near = get_close_matches(name, ends, 1)
            mend = f"Did you mean {near[0]!r}?" if near else f"Give some of {', '.join(ends)}."
            raise InputError(f"{field}: {base!r} has no layer {name!r} to train. {mend}")
