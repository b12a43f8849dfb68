"""Attention in rows of prompt heads (shared prefixes) and their tails (the rest of each example).

Each prompt head is followed by its tails. A tail attends to its head and to itself, not to other
tails. On the CPU a row has one head; a tail's attention to the head and its attention to itself are
computed separately and joined by log-sum-exp, as in flash attention (Dao et al. 2022, section 3.1),
with the same result. On a GPU a row has as many heads as fit, and FlexAttention (Dong et al. 2024)
skips blocks without attention. In shapes, L is the row's length, H the number of attention heads,
and D their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

#: The name of this attention in transformers.
NAME = "packed_heads"
_flash: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_flash_gradients: Any = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


def padding_indices(lengths: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return two index arrays: one pads a row's tails to one length, the other removes the padding.

    ``lengths`` are the tails' numbers of tokens. The first array, of shape (tails, longest), holds
    the indices of tokens among the tokens of all tails; padding has the index after the last token.
    The second, (tokens,), holds each token's slot: its index in the flattened first array.
    """
    count, longest, total = len(lengths), max(lengths), sum(lengths)
    padded = torch.full((count, longest), total)
    is_token = torch.arange(longest) < torch.tensor(lengths)[:, None]
    padded[is_token] = torch.arange(total)
    return padded, is_token.flatten().nonzero()[:, 0]


def attention_arguments(parts: Tensor) -> dict[str, Any]:
    """Return the keyword arguments that limit a network's attention to the parts of a row.

    ``parts`` (2, L) is from ``collate_heads``. On the CPU the row has one head, and no padding.
    """
    if parts.is_cuda:
        return {"attention_mask": block_mask(parts)}
    lengths = parts[1].unique_consecutive(return_counts=True)[1].tolist()
    padded, slots = padding_indices(lengths[1:])
    return {"head_length": lengths[0], "padded": padded, "slots": slots}


def block_mask(parts: Tensor) -> BlockMask:
    """Return the mask of a row's parts, (1, 1, L, L), for FlexAttention."""
    groups, tails = parts

    def attends(batch: Tensor, attention_head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        in_head_or_same_tail = (tails[key] == 0) | (tails[key] == tails[query])
        visible: Tensor = (groups[query] == groups[key]) & in_head_or_same_tail & (query >= key)
        return visible

    size = parts.shape[1]
    # A compiled mask would save L * L bytes, but its kernel takes more than a minute to compile.
    mask: BlockMask = create_block_mask(attends, None, None, size, size, parts.device)
    return mask


@cache
def _compiled_attention() -> Any:
    return torch.compile(flex_attention, dynamic=False)


def register() -> None:
    """Register this attention with transformers; rows without prompt heads get ``sdpa``."""
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
    head_length: int | None = None,
    padded: Tensor | None = None,
    slots: Tensor | None = None,
    **settings: Any,
) -> tuple[Tensor, None]:
    """Return states (1, L, H, D) for query (1, H, L, D), key and value (1, G, L, D).

    Each of the G key-value heads serves H / G attention heads.
    """
    is_block_masked = isinstance(attention_mask, BlockMask)
    if not is_block_masked and head_length is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        sdpa: Any = sdpa_attention_forward
        result, _ = sdpa(module, query, key, value, attention_mask, dropout, scaling, **settings)
        return result, None
    group_size = query.shape[1] // key.shape[1]
    keys, values = (tensor.repeat_interleave(group_size, 1) for tensor in (key, value))
    if is_block_masked:
        compiles = query.is_cuda and not torch.compiler.is_compiling()
        attend: Any = _compiled_attention() if compiles else flex_attention
        return attend(query, keys, values, None, attention_mask, scaling).transpose(1, 2), None
    attend_parts: Any = PackedAttention.apply
    states = attend_parts(query, keys, values, head_length, scaling, padded, slots)
    return states.transpose(1, 2).contiguous(), None


class PackedAttention(torch.autograd.Function):
    """The attention in a row of one prompt head and its tails, with gradients.

    Its inputs are query, key and value (1, H, L, D), the number of tokens of the prompt head, the
    factor of the scores, and the result of ``padding_indices``; its output is (1, H, L, D).
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        """Return the output, and save what ``backward`` needs, such as log-sum-exps of scores."""
        query, key, value, head_length, scale, padded, slots = inputs
        qkv = query, key, value
        head_qkv, head_kv, tail_queries, padded_tail_qkv = _blocks(qkv, head_length, padded)
        head_states, head_lse = _flash(*head_qkv, is_causal=True, scale=scale)
        # ``cross`` is the attention of the tails to the head.
        cross_states, cross_lse = _flash(tail_queries, *head_kv, scale=scale)
        tail_states, tail_lse = _flash(*padded_tail_qkv, is_causal=True, scale=scale)
        tail_lse = _unpad(tail_lse[..., None], slots)
        # The share of a tail token's attention that goes to the head.
        head_share = torch.sigmoid(cross_lse[..., None] - tail_lse).to(query.dtype)
        joined_states = head_share * cross_states + (1 - head_share) * _unpad(tail_states, slots)
        joined_lse = torch.logaddexp(cross_lse[..., None], tail_lse)
        ctx.save_for_backward(*qkv, head_states, head_lse, joined_states, joined_lse, padded, slots)
        ctx.scale = scale
        return torch.cat([head_states, joined_states], 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of query, key and value.

        The gradients within the head, from the tails to the head, and within the tails are those of
        ordinary attention, but with joined states and log-sum-exps (Dao et al. 2022, algorithm 4).
        """
        *qkv, head_states, head_lse, joined_states, joined_lse, padded, slots = ctx.saved_tensors
        head_length = head_states.shape[2]
        head_qkv, head_kv, tail_queries, padded_tail_qkv = _blocks(qkv, head_length, padded)
        head_output_grads, tail_output_grads = gradients[0].tensor_split([head_length], 2)
        scale = ctx.scale
        within_head = (head_output_grads, *head_qkv, head_states, head_lse)
        tails_to_head = tail_output_grads, tail_queries, *head_kv, joined_states, joined_lse[..., 0]
        padded_lse, padded_states = _pad(joined_lse, padded)[..., 0], _pad(joined_states, padded)
        padded_output_grads = _pad(tail_output_grads, padded)
        within_tails = (padded_output_grads, *padded_tail_qkv, padded_states, padded_lse)
        head_grads = _flash_gradients(*within_head, 0.0, True, scale=scale)
        cross_grads = _flash_gradients(*tails_to_head, 0.0, False, scale=scale)
        padded_grads = _flash_gradients(*within_tails, 0.0, True, scale=scale)
        tail_grads = [_unpad(gradient, slots) for gradient in padded_grads]
        joined_grads = (
            torch.cat([head_grads[0], cross_grads[0] + tail_grads[0]], 2),
            *(torch.cat([head_grads[n] + cross_grads[n], tail_grads[n]], 2) for n in (1, 2)),
        )
        return *joined_grads, None, None, None, None


def _blocks(
    qkv: Sequence[Tensor], head_length: int, padded: Tensor
) -> tuple[Sequence[Tensor], Sequence[Tensor], Tensor, Sequence[Tensor]]:
    """Return the head's QKV, the head's KV, the tails' queries, and the tails' padded QKV."""
    head_qkv = [states[:, :, :head_length] for states in qkv]
    tail_qkv = [states[:, :, head_length:] for states in qkv]
    return head_qkv, head_qkv[1:], tail_qkv[0], [_pad(states, padded) for states in tail_qkv]


def _pad(tails: Tensor, padded: Tensor) -> Tensor:
    """Return tails (1, H, tokens, D) as (tails, H, longest, D), 0 in slots without a token."""
    return nn.pad(tails[0], (0, 0, 0, 1))[:, padded].transpose(0, 1)


def _unpad(tails: Tensor, slots: Tensor) -> Tensor:
    """Return tails (tails, H, longest, D) as (1, H, tokens, D)."""
    return tails.transpose(0, 1).flatten(1, 2)[None, :, slots]
