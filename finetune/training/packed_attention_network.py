"""Attention over prompt heads and their tails in one row, each tail blind to the others.

A row holds a head's tokens first, then its tails. A tail attends to its head and to itself. On the
CPU a row has one head; both parts are computed apart, and joined by their log-sum-exp, as flash
attention joins blocks (Dao et al. 2022, section 3.1): the result is that of attending to both at
once. On a GPU a row has as many heads as fit, and FlexAttention (Dong et al. 2024) leaves out the
blocks of the scores that nothing attends to.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

#: The name by which transformers knows this attention.
NAME = "packed_heads"


def places_of(lengths: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return the indices between tails in a row of N tokens, and tails padded to (n, T).

    Args:
        lengths: Tokens of each of n tails; T is the largest, N their sum.

    Returns:
        For each padded slot its token in the row, (n, T), where N means none; and for each token of
        the row its index among the n * T padded slots, (N,).
    """
    count, longest, total = len(lengths), max(lengths), sum(lengths)
    padded = torch.full((count, longest), total)
    there = torch.arange(longest) < torch.tensor(lengths)[:, None]
    padded[there] = torch.arange(total)
    return padded, there.flatten().nonzero()[:, 0]


def attention_of(parts: Tensor) -> dict[str, Any]:
    """Return a network's arguments for attention within a row's parts.

    Args:
        parts: (2, L): the number of each token's head, and that of its tail, 0 in the head. On the
            CPU there is one head, and no padding.
    """
    if parts.is_cuda:
        return {"attention_mask": block_mask(parts)}
    counts = parts[1].unique_consecutive(return_counts=True)[1].tolist()
    padded, places = places_of(counts[1:])
    return {"head_tokens": counts[0], "padded": padded, "places": places}


def block_mask(parts: Tensor) -> BlockMask:
    """Return the mask of a row's parts, (1, 1, L, L), for FlexAttention."""
    heads, tails = parts

    def sees(batch: Tensor, layer: Tensor, query: Tensor, key: Tensor) -> Tensor:
        own = (tails[key] == 0) | (tails[key] == tails[query])
        seen: Tensor = (heads[query] == heads[key]) & own & (query >= key)
        return seen

    size = parts.shape[1]
    # Compiled, it would save L * L bytes; its kernel alone compiles for more than a minute.
    mask: BlockMask = create_block_mask(sees, None, None, size, size, parts.device)
    return mask


@cache
def _compiled() -> Any:
    return torch.compile(flex_attention, dynamic=False)


def register() -> None:
    """Register this attention with transformers; it attends to other rows as ``sdpa`` does."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | BlockMask | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    head_tokens: int | None = None,
    padded: Tensor | None = None,
    places: Tensor | None = None,
    **settings: Any,
) -> tuple[Tensor, None]:
    """Attend with query (1, H, L, D), key and value (1, K, L, D), called by transformers."""
    if isinstance(attention_mask, BlockMask):
        size = query.shape[1] // key.shape[1]
        keys, values = (part.repeat_interleave(size, 1) for part in (key, value))
        apart = query.is_cuda and not torch.compiler.is_compiling()
        attend: Any = _compiled() if apart else flex_attention
        return attend(query, keys, values, None, attention_mask, scaling).transpose(1, 2), None
    if head_tokens is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        plain: Any = sdpa_attention_forward
        result, _ = plain(module, query, key, value, attention_mask, dropout, scaling, **settings)
        return result, None
    size = query.shape[1] // key.shape[1]
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    keys, values = (part[0].repeat_interleave(size, 0) for part in (key, value))
    out: Any = PackedAttention.apply
    states = out(query[0] * scale, keys, values, head_tokens, padded, places)
    return states.transpose(0, 1)[None].contiguous(), None


class PackedAttention(torch.autograd.Function):
    """The attention, with the gradients of both parts.

    Takes query, key and value (H, L, D), the query scaled; the number of the head's tokens; and
    ``places_of`` the tails. Returns (H, L, D).
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        """Attend, and keep the weights for the gradients."""
        query, key, value, head, padded, places = inputs
        keys, values, tails = key[:, :head], value[:, :head], query[:, head:]
        own_keys, own_values = _pad(key[:, head:], padded), _pad(value[:, head:], padded)
        scores = _causal(torch.bmm(query[:, :head], keys.mT))
        of_head = nn.softmax(scores, -1)
        head_states = torch.bmm(of_head, values)
        of_tails, total = _softmax(torch.bmm(tails, keys.mT))
        within, own_total = _softmax(_causal(_pad(tails, padded) @ own_keys.mT))
        # The share of a tail's attention that the head has.
        share = torch.sigmoid(total - _unpad(own_total, places)).to(query.dtype)
        states = share * torch.bmm(of_tails, values)
        states += (1 - share) * _unpad(within @ own_values, places)
        saved = (query, key, value, of_head, of_tails, within, share, states, head_states)
        ctx.save_for_backward(*saved, padded, places)
        return torch.cat([head_states, states], 1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of query, key and value."""
        query, key, value, of_head, of_tails, within, share, states, head_states, padded, places = (
            ctx.saved_tensors
        )
        head = head_states.shape[1]
        keys, values, tails = key[:, :head], value[:, :head], query[:, head:]
        above, below = gradients[0][:, :head], gradients[0][:, head:]
        delta = (below * states).sum(-1, keepdim=True)
        first, second = below * share, _pad(below * (1 - share), padded)
        d_head = _d_scores(of_head, above, values, (above * head_states).sum(-1, keepdim=True))
        d_tails = _d_scores(of_tails, first, values, delta * share)
        own_values = _pad(value[:, head:], padded)
        d_own = _d_scores(within, second, own_values, _pad(delta * (1 - share), padded))
        of_own_keys = d_own @ _pad(key[:, head:], padded)
        d_query = torch.bmm(d_tails, keys) + _unpad(of_own_keys, places)
        d_key = torch.bmm(d_head.mT, query[:, :head]) + torch.bmm(d_tails.mT, tails)
        d_value = torch.bmm(of_head.mT, above) + torch.bmm(of_tails.mT, first)
        return (
            torch.cat([torch.bmm(d_head, keys), d_query], 1),
            torch.cat([d_key, _unpad(d_own.mT @ _pad(tails, padded), places)], 1),
            torch.cat([d_value, _unpad(within.mT @ second, places)], 1),
            *(None, None, None),
        )


def _pad(tails: Tensor, padded: Tensor) -> Tensor:
    """Return tails (H, N, D) as (H, n, T, D), zero where there is no token."""
    return nn.pad(tails, (0, 0, 0, 1))[:, padded]


def _unpad(tails: Tensor, places: Tensor) -> Tensor:
    """Return tails (H, n, T, D) as (H, N, D)."""
    return tails.flatten(1, 2)[:, places]


def _causal(scores: Tensor) -> Tensor:
    """Mask the scores of later tokens."""
    size = scores.shape[-1]
    later = torch.ones(size, size, dtype=torch.bool, device=scores.device).triu(1)
    return scores.masked_fill_(later, float("-inf"))


def _softmax(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weights, and the log-sum-exp of each row in 32 bits."""
    logs = nn.log_softmax(scores, -1, dtype=torch.float32)
    total = scores[..., :1].float() - logs[..., :1]
    return logs.exp_().to(scores.dtype), total


def _d_scores(weights: Tensor, gradient: Tensor, values: Tensor, delta: Tensor) -> Tensor:
    """Return the gradient of the scores, by that of the states; reuses the large product."""
    return torch.matmul(gradient, values.mT).sub_(delta).mul_(weights)
