"""Whether a network is one that plans can be decoded with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from casewright.errors import InputError, told

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def check_network(network: PreTrainedModel) -> None:
    """Read a token, and look at what the network keeps of it.

    Plans are decoded from key/value states, which are kept for a prompt's head and cut back after
    a plan. States of other kinds (of state-space layers, of convolutions) cannot be cut back, and
    an encoder keeps none.

    Raises:
        InputError: The network keeps other states than keys and values, or cannot be called.
    """
    import torch
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    first = torch.zeros((1, 1), dtype=torch.long, device=network.device)
    try:
        with torch.no_grad():
            read = network(input_ids=first, position_ids=first, use_cache=True)
    except Exception as error:
        raise InputError(
            f"The network ({type(network).__name__}) cannot be called with tokens and their "
            f"positions: {told(error).rstrip('.')}. Take a model such as Mistral, Llama or Qwen."
        ) from error
    states = getattr(getattr(read, "past_key_values", None), "layers", ())
    if not states or any(type(s) not in (DynamicLayer, DynamicSlidingWindowLayer) for s in states):
        raise InputError(other_states(type(network).__name__))


def other_states(network: str) -> str:
    """Return what is wrong with a network, by its class's name, that keeps other states."""
    return (
        f"The network ({network}) does not keep just keys and values of what it read: it is an "
        "encoder, or a state-space or hybrid model. Take a model such as Mistral, Llama or Qwen."
    )
