"""Transformer layers of the plan parser: joint ones with relations, and decoding ones."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Joint(nn.Module):
    """A layer over words, context fields and the toolbox's nodes, with a bias a pair of nodes."""

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.norm_after = nn.LayerNorm(size), nn.LayerNorm(size)
        self.into, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.forward_layer = _forward_layer(size, dropout)

    def forward(self, states: Tensor, related: Tensor, links: Tensor, hidden: Tensor) -> Tensor:
        """Return states (n, nodes, size) after the layer.

        Args:
            states: Before it.
            related: Added to all attention (1, heads, nodes, nodes).
            links: Added, both ways, to that of the first nodes to the last (n, heads, first, last).
            hidden: Far below zero for nodes that are not there (n, 1, 1, nodes).
        """
        query, key, value = (
            _split(part, self.heads) for part in self.into(self.norm(states)).chunk(3, -1)
        )
        scores = query @ key.transpose(-1, -2) * float(query.shape[-1] ** -0.5) + related + hidden
        first, last = links.shape[2], links.shape[3]
        scores[:, :, :first, -last:] += links
        scores[:, :, -last:, :first] += links.transpose(2, 3)
        seen = scores.softmax(-1).to(value.dtype) @ value
        states = states + self.out(_join(seen))
        made: Tensor = states + self.forward_layer(self.norm_after(states))
        return made


class Decoding(nn.Module):
    """A layer that looks at others of its kind, and at the joint states."""

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(size) for _ in range(3)])
        self.own, self.own_out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.query, self.memory = nn.Linear(size, size), nn.Linear(size, 2 * size)
        self.out = nn.Linear(size, size)
        self.forward_layer = _forward_layer(size, dropout)

    def remember(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values (n, heads, nodes, size / heads) of joint states."""
        key, value = self.memory(memory).chunk(2, -1)
        return _split(key, self.heads), _split(value, self.heads)

    def forward(
        self, states: Tensor, own: Tensor, memory: tuple[Tensor, Tensor], seen: Tensor
    ) -> Tensor:
        """Return states (n, places, size) after the layer.

        Args:
            states: Before it.
            own: True where a place may look at another (n or 1, 1, places, places).
            memory: Of ``remember``.
            seen: True for joint states that are there (n, 1, 1, nodes).
        """
        query, key, value = (
            _split(part, self.heads) for part in self.own(self.norms[0](states)).chunk(3, -1)
        )
        found = _attended(query, key, value, hidden_bias(own))
        states = states + self.own_out(_join(found))
        query = _split(self.query(self.norms[1](states)), self.heads)
        found = _attended(query, *memory, hidden_bias(seen))
        states = states + self.out(_join(found))
        made: Tensor = states + self.forward_layer(self.norms[2](states))
        return made


def perceptron(size: int, hidden: int, out: int) -> nn.Sequential:
    """Return a layer of features that says nothing before it is trained."""
    made = nn.Sequential(nn.Linear(size, hidden), nn.GELU(), nn.Linear(hidden, out))
    last = made[2]
    assert isinstance(last, nn.Linear)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return made


def dots(query: Tensor, key: Tensor) -> Tensor:
    """Return scaled products (n, queries, keys) of (n, queries, size) and (n, keys, size)."""
    return (query @ key.transpose(-1, -2)).float() / float(query.shape[-1] ** 0.5)


def _forward_layer(size: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(size, 3 * size), nn.GELU(), nn.Linear(3 * size, size), nn.Dropout(dropout)
    )


def _attended(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
    """Return what is attended to; plain products are faster here than torch's fused attention."""
    scores = query @ key.transpose(-1, -2) * float(query.shape[-1] ** -0.5) + bias
    return scores.softmax(-1).to(value.dtype) @ value


def hidden_bias(seen: Tensor) -> Tensor:
    """Return what attention is added to: nothing where something is, else far below zero."""
    return torch.zeros(seen.shape).masked_fill(~seen, -1e4)


def _split(states: Tensor, heads: int) -> Tensor:
    made: Tensor = states.unflatten(-1, (heads, -1)).transpose(1, 2)
    return made


def _join(states: Tensor) -> Tensor:
    return states.transpose(1, 2).flatten(2)


def masked(scores: Tensor, there: Tensor) -> Tensor:
    """Return scores, those of what is not there far below any other."""
    return scores.float().masked_fill(~there, -1e4)
