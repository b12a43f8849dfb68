"""A Mistral with random weights: what a small base model starts from.

A random network takes the time of a trained one of its size, and knows nothing: benches measure
time with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def new_mistral(
    settings: Mapping[str, Any],
    tokenizer: Any,
    seed: int = 0,
    *,
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> Any:
    """Return a ``MistralForCausalLM``, the same for the same arguments.

    Args:
        settings: Of ``MistralConfig``; no sliding window, where they do not say.
        tokenizer: Whose special tokens it has.
        seed: Draws the weights.
        device: Where they are drawn; the CPU by default.
        dtype: In which numbers; float32 by default.
    """
    import torch

    transformers: Any = import_module("transformers")
    config = transformers.MistralConfig(
        **{
            "sliding_window": None,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
            **settings,
        }
    )
    place = device or torch.device("cpu")
    # Whoever draws numbers beside this keeps their own.
    forked = [place] if place.type == "cuda" else []
    with torch.random.fork_rng(devices=forked), place:
        torch.manual_seed(seed)
        network = transformers.AutoModelForCausalLM.from_config(
            config, dtype=dtype or torch.float32, attn_implementation="sdpa"
        )
    return network.eval()
