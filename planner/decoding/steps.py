"""Forward passes in which a model reads new tokens after the content of a cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from casewright.planner.decoding.kv_cache import KVCache
from casewright.planner.decoding.limits import DecodingLimits
from casewright.planner.language_model import LanguageModel

#: Maximum number of tokens that a forward pass reads; the deadline is checked between passes.
CHUNK_TOKENS = 512


def forward(
    model: LanguageModel, cache: KVCache, tokens: Tensor, positions: Tensor, **settings: Any
) -> Any:
    """Return the logits of one forward pass over ``tokens``, an array (rows, columns).

    The pass adds the states of the tokens to the cache. ``settings`` are further arguments of the
    network.
    """
    inputs = {"input_ids": tokens, "position_ids": positions, **settings}
    with torch.no_grad():
        return model.network(**inputs, past_key_values=cache, use_cache=True).logits


def read(
    model: LanguageModel,
    cache: KVCache,
    tokens: Sequence[int],
    limits: DecodingLimits,
    logits_after: Sequence[int],
) -> NDArray[np.float32]:
    """Read tokens after the cache's content, and add their states to the cache.

    Args:
        cache: States of one row.
        tokens: Tokens to read, at least one.
        logits_after: Indices of tokens, ascending; the logits after these tokens are returned.

    Returns:
        Logits of shape ``(len(logits_after), vocabulary)``.

    Raises:
        DecodingError: The deadline passed before the last forward pass.
    """
    logit_parts: list[Any] = []
    for start in range(0, len(tokens), CHUNK_TOKENS):
        limits.check_time()
        chunk = torch.tensor([tokens[start : start + CHUNK_TOKENS]], device=model.device)
        positions = torch.arange(cache.length, cache.length + chunk.shape[1]).to(model.device)
        chunk_indices = indices_within(logits_after, start, CHUNK_TOKENS)
        needs_at_most_last = chunk_indices in ([], [chunk.shape[1] - 1])
        # ``logits_to_keep`` is a number n, for the last n logits, or a tensor of indices.
        keep = 1 if needs_at_most_last else torch.tensor(chunk_indices, device=model.device)
        logits = forward(model, cache, chunk, positions[None], logits_to_keep=keep)[0]
        logit_parts.append(logits[: len(chunk_indices)])
    return to_numpy(torch.cat(logit_parts))


def indices_within(indices: Sequence[int], start: int, size: int) -> list[int]:
    """Return the indices that are in a chunk, relative to the chunk's start."""
    return [index - start for index in indices if start <= index < start + size]


def to_numpy(logits: Any) -> NDArray[np.float32]:
    """Return a logits tensor of any device and dtype as an array."""
    array: NDArray[np.float32] = logits.float().cpu().numpy()
    return array
