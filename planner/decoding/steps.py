"""Forward passes of a model, which read new tokens after the content of a cache."""

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

#: Maximum number of tokens that are read in one call; the deadline is checked between calls.
CHUNK_TOKENS = 512


def forward(
    model: LanguageModel, cache: KVCache, tokens: Tensor, positions: Tensor, **settings: Any
) -> Any:
    """Return the logits of one forward pass over tokens (rows, tokens).

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
    positions: Sequence[int],
) -> NDArray[np.float32]:
    """Read tokens after the cache's content, and add their states to the cache.

    Args:
        cache: States of one row.
        tokens: Tokens to read, at least one.
        positions: Indices into ``tokens``, ascending; the logits after these tokens are returned.

    Returns:
        Logits of shape ``(positions, vocabulary)``.

    Raises:
        DecodingError: The deadline passed between two calls.
    """
    logit_parts: list[Any] = []
    for start in range(0, len(tokens), CHUNK_TOKENS):
        limits.check_time()
        chunk = torch.tensor([tokens[start : start + CHUNK_TOKENS]], device=model.device)
        columns = torch.arange(cache.length, cache.length + chunk.shape[1]).to(model.device)
        chunk_positions = positions_within(positions, start, CHUNK_TOKENS)
        needs_at_most_last = chunk_positions in ([], [chunk.shape[1] - 1])
        # The network returns the last n logits for a number n, or logits at positions in a tensor.
        keep = 1 if needs_at_most_last else torch.tensor(chunk_positions, device=model.device)
        logits = forward(model, cache, chunk, columns[None], logits_to_keep=keep)[0]
        logit_parts.append(logits[: len(chunk_positions)])
    return to_numpy(torch.cat(logit_parts))


def positions_within(positions: Sequence[int], start: int, size: int) -> list[int]:
    """Return the positions that are in a chunk, relative to the chunk's start."""
    return [position - start for position in positions if start <= position < start + size]


def to_numpy(logits: Any) -> NDArray[np.float32]:
    """Return a logits tensor of any device and dtype as an array."""
    array: NDArray[np.float32] = logits.float().cpu().numpy()
    return array
