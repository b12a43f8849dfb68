"""Transformer layers of the plan parser in torch: joint layers and decoding layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class JointLayer(nn.Module):
    """Self-attention over nodes (words, context fields, toolbox nodes), with biases for pairs."""

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.norm_after = nn.LayerNorm(size), nn.LayerNorm(size)
        self.into, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.forward_layer = _forward_layer(size, dropout)

    def forward(self, states: Tensor, relations: Tensor, links: Tensor, padding: Tensor) -> Tensor:
        """Return states (n, nodes, size) after the layer.

        Args:
            relations: Addends to all attention scores (1, heads, nodes, nodes).
            links: Addends to the scores between the first nodes (words and context fields) and the
                last nodes (context fields and toolbox nodes), in both directions (n, heads, number
                of first nodes, number of last nodes).
            padding: Addends that hide padding (n, 1, 1, nodes); see ``hidden_bias``.
        """
        query, key, value = (
            _split_heads(part, self.heads) for part in self.into(self.norm(states)).chunk(3, -1)
        )
        scores = (
            query @ key.transpose(-1, -2) * float(query.shape[-1] ** -0.5) + relations + padding
        )
        first_count, last_count = links.shape[2:]
        scores[:, :, :first_count, -last_count:] += links
        scores[:, :, -last_count:, :first_count] += links.transpose(2, 3)
        attended = scores.softmax(-1).to(value.dtype) @ value
        states = states + self.out(_join_heads(attended))
        output: Tensor = states + self.forward_layer(self.norm_after(states))
        return output


class DecodingLayer(nn.Module):
    """Layer with self-attention (``own``) and cross-attention to the output of joint layers."""

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(size) for _ in range(3)])
        self.own, self.own_out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.query, self.memory = nn.Linear(size, size), nn.Linear(size, 2 * size)
        self.out = nn.Linear(size, size)
        self.forward_layer = _forward_layer(size, dropout)

    def keys_values(self, joint_states: Tensor) -> tuple[Tensor, Tensor]:
        """Return the layer's keys and values of joint states (n, heads, nodes, size / heads)."""
        key, value = self.memory(joint_states).chunk(2, -1)
        return _split_heads(key, self.heads), _split_heads(value, self.heads)

    def forward(
        self, states: Tensor, mask: Tensor, keys_values: tuple[Tensor, Tensor], present: Tensor
    ) -> Tensor:
        """Return states (n, places, size) after the layer; a place has a step or an argument.

        Args:
            mask: True where a row may attend to a column (n or 1, 1, places or 1, places).
            keys_values: Keys and values of the joint states, from the method ``keys_values``.
            present: True for joint states that are not padding (n, 1, 1, nodes).
        """
        query, key, value = (
            _split_heads(part, self.heads) for part in self.own(self.norms[0](states)).chunk(3, -1)
        )
        states = states + self.own_out(_join_heads(_attend(query, key, value, hidden_bias(mask))))
        query = _split_heads(self.query(self.norms[1](states)), self.heads)
        states = states + self.out(_join_heads(_attend(query, *keys_values, hidden_bias(present))))
        output: Tensor = states + self.forward_layer(self.norms[2](states))
        return output


def perceptron(size: int, hidden: int, out: int) -> nn.Sequential:
    """Return a perceptron whose output is zero before it is trained."""
    first, last = nn.Linear(size, hidden), nn.Linear(hidden, out)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(first, nn.GELU(), last)


def dots(query: Tensor, key: Tensor) -> Tensor:
    """Return scaled products (n, queries, keys) of (n, queries, size) and (n, keys, size)."""
    return (query @ key.transpose(-1, -2)).float() / float(query.shape[-1] ** 0.5)


def _forward_layer(size: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(size, 3 * size), nn.GELU(), nn.Linear(3 * size, size), nn.Dropout(dropout)
    )


def _attend(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
    """Return attention outputs."""
    # Plain products are faster here than torch's fused attention.
    scores = query @ key.transpose(-1, -2) * float(query.shape[-1] ** -0.5) + bias
    return scores.softmax(-1).to(value.dtype) @ value


def hidden_bias(present: Tensor) -> Tensor:
    """Return a bias for attention scores: 0 where ``present`` is True, else -1e4."""
    return torch.zeros(present.shape).masked_fill(~present, -1e4)


def _split_heads(states: Tensor, heads: int) -> Tensor:
    parts: Tensor = states.unflatten(-1, (heads, -1)).transpose(1, 2)
    return parts


def _join_heads(states: Tensor) -> Tensor:
    return states.transpose(1, 2).flatten(2)


def masked(scores: Tensor, present: Tensor) -> Tensor:
    """Return the scores, with -1e4 where ``present`` is False."""
    return scores.float().masked_fill(~present, -1e4)
