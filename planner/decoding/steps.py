"""Forward passes for a sequence: tokens in, logits at some positions out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.planner.decoding.kv_cache import KVCache
from casewright.planner.decoding.limits import DecodingLimits

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

#: Number of tokens that are read in one call; the deadline is checked between calls.
CHUNK = 512


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
        tokens: At least one.
        positions: Positions in ``tokens`` whose logits are returned, ascending.

    Returns:
        Logits of shape ``(positions, vocabulary)``.

    Raises:
        DecodingError: The deadline passed between two calls.
    """
    import torch

    parts: list[Any] = []
    with torch.no_grad():
        for start in range(0, len(tokens), CHUNK):
            limits.check_time()
            chunk = torch.tensor([tokens[start : start + CHUNK]], device=model.device)
            columns = torch.arange(cache.length, cache.length + chunk.shape[1]).to(model.device)
            within = positions_in(positions, start, CHUNK)
            only_last = within in ([], [chunk.shape[1] - 1])
            logits = model.network(
                input_ids=chunk,
                position_ids=columns[None],
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1 if only_last else torch.tensor(within, device=model.device),
            ).logits[0]
            parts.append(logits[: len(within)])
    return on_host(torch.cat(parts))


def positions_in(positions: Sequence[int], start: int, size: int) -> list[int]:
    """Return the positions within a chunk, counted from its start."""
    return [position - start for position in positions if start <= position < start + size]


def on_host(logits: Any) -> NDArray[np.float32]:
    """Return a logits tensor of any device and dtype as an array."""
    array: NDArray[np.float32] = logits.float().cpu().numpy()
    return array
