"""The reader's decoder and pointers in NumPy; see ``reader_network`` for what they compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.planner.parser.layers import (
    HIDDEN,
    Floats,
    LayerNorm,
    Linear,
    Perceptron,
    Weights,
    softmax,
)
from casewright.planner.reader_limits import SHARPNESS

#: Dimensions of an attention head.
HEAD = 64
_SELF, _CROSS = "decoder.self_attn", "decoder.multihead_attn"


@dataclass(frozen=True, slots=True)
class NextAsks:
    """What may be asked next, after each of n beginnings.

    Attributes:
        decoded: The network's states, array (n, size).
        latents: The asks' latents, unit vectors, array (n, 128).
        scores: Logits of the end and of each form, array (n, forms + 1).
    """

    decoded: Floats
    latents: Floats
    scores: Floats


@dataclass(frozen=True, slots=True)
class Memory:
    """Messages as decoder and pointers look at them.

    Attributes:
        states: Of tokens (n, tokens, size).
        hidden: Added to scores of tokens, below zero for padding (n, 1, 1, tokens).
        keys, values: Of the decoder (n, heads, tokens, HEAD).
        ends: Where literals start and end, the pointers' keys (n, tokens, key) of each.
    """

    states: Floats
    hidden: Floats
    keys: Floats
    values: Floats
    ends: Sequence[Floats]


class ReaderLayers:
    """Says what is asked next and where its literals stand. Thread-safe.

    Args:
        weights: Of the network, by name.

    Raises:
        KeyError: A weight is missing.
        ValueError: A weight has another shape than its name says.
    """

    def __init__(self, weights: Weights) -> None:
        parts = dict(weights)
        for name in (_SELF, _CROSS):
            # As the network keeps them: query, key and value beside each other.
            for kind in ("weight", "bias"):
                thirds = np.split(weights[f"{name}.in_proj_{kind}"], 3)
                parts |= {f"{name}.{n}.{kind}": third for n, third in enumerate(thirds)}
        self._form, self._place, self._slot = (
            weights[f"{name}.weight"] for name in ("form", "place", "slot")
        )
        names = ("norm1", "norm2", "norm3")
        self._norms = [LayerNorm(weights, f"decoder.{name}") for name in names]
        self._memory, self._norm = LayerNorm(weights, "memory"), LayerNorm(weights, "norm")
        self._own, self._seen = (
            [Linear(parts, f"{name}.{part}") for part in (0, 1, 2, "out_proj")]
            for name in (_SELF, _CROSS)
        )
        self._into, self._from = (Linear(weights, f"decoder.linear{n}") for n in (1, 2))
        self._out, self._mix = Linear(weights, "out"), Perceptron(weights, "mix")
        self._prototypes = _unit(weights["prototypes"]).T * np.float32(SHARPNESS)
        self._bias = weights["bias"][:-1]
        self._asked, self._keys = (
            [Linear(weights, f"{name}.{number}") for number in range(2)]
            for name in ("asked", "keys")
        )

    def memory(self, states: Floats, mask: NDArray[np.integer]) -> Memory:
        """Return messages as they are looked at.

        Args:
            states: Of tokens (n, tokens, size).
            mask: 1 for tokens, 0 for padding (n, tokens).
        """
        normalised = self._memory(states)
        _, keys, values, _ = self._seen
        hidden = (mask == 0)[:, None, None] * HIDDEN
        ends = [end(states) for end in self._keys]
        return Memory(states, hidden, _heads(keys(normalised)), _heads(values(normalised)), ends)

    def next_asks(self, memory: Memory, before: NDArray[np.integer], covered: Floats) -> NextAsks:
        """Return what may be asked after n beginnings.

        Args:
            memory: Of one message, or of as many as there are beginnings.
            before: The form of the ask before each place, the start at first (n, asks).
            covered: Weights over tokens of that ask's literals (n, asks, tokens).
        """
        fed = self._form[before] + self._place[: before.shape[1]] + covered @ memory.states
        # What is asked next is read at the last place, which sees all places.
        query, keys, values, out = self._own
        own = self._norms[0](fed)
        seen = _attended(*map(_heads, (query(own[:, -1:]), keys(own), values(own))))
        total = fed[:, -1:] + out(seen)
        query, _, _, out = self._seen
        looking = _heads(query(self._norms[1](total)))
        total += out(_attended(looking, memory.keys, memory.values, memory.hidden))
        inner = self._into(self._norms[2](total))
        total += self._from(np.maximum(inner, 0))
        decoded = self._norm(total)[:, 0]
        latents = _unit(self._out(decoded))
        return NextAsks(decoded, latents, latents @ self._prototypes + self._bias)

    def point(
        self,
        memory: Memory,
        decoded: Floats,
        forms: NDArray[np.integer],
        slots: NDArray[np.integer],
    ) -> tuple[Floats, Floats]:
        """Return logits over tokens of where n literals start and end, each (n, tokens).

        Args:
            memory: Of one message, or of as many as there are literals.
            decoded: The asks' states (n, size).
            forms: The forms that were chosen for them (n,).
            slots: Which of their open literals (n,).
        """
        wanted = self._mix(np.concatenate([decoded, self._form[forms] + self._slot[slots]], -1))
        start, end = (
            (keys @ asked(wanted)[..., None])[..., 0] / np.float32(keys.shape[-1] ** 0.5)
            for asked, keys in zip(self._asked, memory.ends, strict=True)
        )
        return start, end


def _heads(states: Floats) -> Floats:
    """Return states (n, places, size) by head, (n, heads, places, HEAD)."""
    return states.reshape(*states.shape[:2], -1, HEAD).swapaxes(1, 2)


def _attended(
    queries: Floats, keys: Floats, values: Floats, hidden: Floats | None = None
) -> Floats:
    """Return what queries (n, heads, places, HEAD) see of keys' values, (n, places, size)."""
    scores = queries @ keys.swapaxes(-1, -2) / np.float32(HEAD**0.5)
    shares = softmax(scores if hidden is None else scores + hidden)
    seen = (shares @ values).swapaxes(1, 2)
    return seen.reshape(*seen.shape[:2], -1)


def _unit(vectors: Floats) -> Floats:
    """Return vectors (…, size) with length 1."""
    unit: Floats = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True).clip(1e-12)
    return unit
