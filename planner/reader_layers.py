"""The reader's decoder and pointers in NumPy; see ``reader_network`` for the network."""

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

#: Factor between a cosine and a logit.
SHARPNESS = 14.0
#: Dimensions of an attention head.
HEAD = 64
_SELF, _CROSS = "decoder.self_attn", "decoder.multihead_attn"


@dataclass(frozen=True, slots=True)
class NextSubQueries:
    """Scores of the next sub-query after each of n beginnings.

    Attributes:
        decoded: The network's states, array (n, size).
        latents: The sub-queries' latents, unit vectors, array (n, 128).
        scores: Logits of the end and of the templates, array (n, templates + 1).
    """

    decoded: Floats
    latents: Floats
    scores: Floats


@dataclass(frozen=True, slots=True)
class Memory:
    """Encoded messages, to which decoder and pointers attend.

    Attributes:
        states: States of tokens (n, tokens, size).
        hidden: Additive attention mask, negative for padding (n, 1, 1, tokens).
        keys, values: Keys and values of the decoder (n, heads, tokens, HEAD).
        ends: The pointers' keys for starts and for ends of literals, each (n, tokens, key).
    """

    states: Floats
    hidden: Floats
    keys: Floats
    values: Floats
    ends: Sequence[Floats]


class ReaderLayers:
    """Decodes the next sub-query and the pointers to its literals. Thread-safe.

    Raises:
        KeyError: A weight is missing.
        ValueError: A weight has another shape than its name says.
    """

    def __init__(self, weights: Weights) -> None:
        parts = dict(weights)
        for name in (_SELF, _CROSS):
            # The network's weights have query, key and value concatenated.
            for kind in ("weight", "bias"):
                thirds = np.split(weights[f"{name}.in_proj_{kind}"], 3)
                parts |= {f"{name}.{n}.{kind}": third for n, third in enumerate(thirds)}
        self._form, self._place, self._slot = (
            weights[f"{name}.weight"] for name in ("form", "place", "slot")
        )
        #: Number of the start template, before the first sub-query.
        self.start = len(self._form) - 1
        names = ("norm1", "norm2", "norm3")
        self._norms = [LayerNorm(weights, f"decoder.{name}") for name in names]
        self._memory, self._norm = LayerNorm(weights, "memory"), LayerNorm(weights, "norm")
        self._self, self._cross = (
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
        """Return the memory of token states (n, tokens, size); the mask is 0 for padding."""
        normalised = self._memory(states)
        _, keys, values, _ = self._cross
        hidden = (mask == 0)[:, None, None] * HIDDEN
        ends = [end(states) for end in self._keys]
        return Memory(states, hidden, _heads(keys(normalised)), _heads(values(normalised)), ends)

    def next_sub_queries(
        self, memory: Memory, before: NDArray[np.integer], covered: Floats
    ) -> NextSubQueries:
        """Return the scores of the next sub-query after n beginnings; see ``ReaderNetwork.decode``.

        The memory is that of one message, or of n.
        """
        fed = self._form[before] + self._place[: before.shape[1]] + covered @ memory.states
        # The next sub-query is decoded at the last position, which attends to all positions.
        query, keys, values, out = self._self
        normalised = self._norms[0](fed)
        seen = _attended(
            *map(_heads, (query(normalised[:, -1:]), keys(normalised), values(normalised)))
        )
        total = fed[:, -1:] + out(seen)
        query, _, _, out = self._cross
        queries = _heads(query(self._norms[1](total)))
        total += out(_attended(queries, memory.keys, memory.values, memory.hidden))
        inner = self._into(self._norms[2](total))
        total += self._from(np.maximum(inner, 0))
        decoded = self._norm(total)[:, 0]
        latents = _unit(self._out(decoded))
        return NextSubQueries(decoded, latents, latents @ self._prototypes + self._bias)

    def point(
        self,
        memory: Memory,
        decoded: Floats,
        templates: NDArray[np.integer],
        slots: NDArray[np.integer],
    ) -> tuple[Floats, Floats]:
        """Return logits over tokens for the starts and the ends of n literals, each (n, tokens).

        The memory is that of one message, or of n; see ``ReaderNetwork.point``.
        """
        fed = self._form[templates] + self._slot[slots]
        wanted = self._mix(np.concatenate([decoded, fed], -1))
        start, end = (
            (keys @ query(wanted)[..., None])[..., 0] / np.float32(keys.shape[-1] ** 0.5)
            for query, keys in zip(self._asked, memory.ends, strict=True)
        )
        return start, end


def _heads(states: Floats) -> Floats:
    """Return states (n, positions, size) split into heads, (n, heads, positions, HEAD)."""
    return states.reshape(*states.shape[:2], -1, HEAD).swapaxes(1, 2)


def _attended(
    queries: Floats, keys: Floats, values: Floats, hidden: Floats | None = None
) -> Floats:
    """Return the attention of queries (n, heads, positions, HEAD), (n, positions, size)."""
    scores = queries @ keys.swapaxes(-1, -2) / np.float32(HEAD**0.5)
    shares = softmax(scores if hidden is None else scores + hidden)
    seen = (shares @ values).swapaxes(1, 2)
    return seen.reshape(*seen.shape[:2], -1)


def _unit(vectors: Floats) -> Floats:
    """Return vectors (…, size) normalised to length 1."""
    unit: Floats = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True).clip(1e-12)
    return unit
