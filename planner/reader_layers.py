"""Runs ``ReaderNetwork`` in NumPy, to decode the sub-queries of a message and their literals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casewright.planner.parser.layers import (
    MASKED_SCORE,
    Floats,
    LayerNorm,
    Linear,
    Perceptron,
    Weights,
    softmax,
)

#: Factor that turns a cosine into a logit.
SHARPNESS = 14.0
#: Dimensions of an attention head.
HEAD_SIZE = 64
_SELF_ATTENTION, _CROSS_ATTENTION = "decoder.self_attn", "decoder.multihead_attn"


@dataclass(frozen=True, slots=True)
class NextSubQueries:
    """Scores of the next sub-query after each of n prefixes; a prefix has the earlier sub-queries.

    Attributes:
        decoded: The decoder's state after each prefix, array (n, size).
        latents: The next sub-query's latent after each prefix, array (n, LATENT_SIZE).
        scores: Logits of the message's end, then of each template, array (n, templates + 1).
    """

    decoded: Floats
    latents: Floats
    scores: Floats


@dataclass(frozen=True, slots=True)
class Memory:
    """Encoded messages, to which the decoder and the pointers to literals attend.

    Attributes:
        states: States of tokens (n, tokens, size).
        attention_mask: Additive mask, negative for padding (n, 1, 1, tokens).
        keys: Keys of the tokens in the decoder's attention (n, heads, tokens, HEAD_SIZE).
        values: Values of the tokens in this attention, in the same shape.
        pointer_keys: Keys for starts of literals, and keys for ends, each (n, tokens, key size).
    """

    states: Floats
    attention_mask: Floats
    keys: Floats
    values: Floats
    pointer_keys: Sequence[Floats]


class ReaderLayers:
    """Decodes the next sub-query and the pointers to its literals. Thread-safe.

    ``ReaderNetwork`` explains the names of the weights.
    Raise ``KeyError`` if a weight is missing, and ``ValueError`` if a weight has the wrong shape.
    """

    def __init__(self, weights: Weights) -> None:
        split_weights = dict(weights)
        for name in (_SELF_ATTENTION, _CROSS_ATTENTION):
            # PyTorch joins the weights of query, key and value, which become parts 0, 1 and 2.
            for kind in ("weight", "bias"):
                parts = np.split(weights[f"{name}.in_proj_{kind}"], 3)
                split_weights |= {f"{name}.{n}.{kind}": part for n, part in enumerate(parts)}
        self._template_embedding, self._position_embedding, self._slot_embedding = (
            weights[f"{name}.weight"] for name in ("form", "place", "slot")
        )
        #: Template number that stands for the start of the message.
        self.start = len(self._template_embedding) - 1
        names = ("norm1", "norm2", "norm3")
        self._norms = [LayerNorm(weights, f"decoder.{name}") for name in names]
        self._memory_norm = LayerNorm(weights, "memory")
        self._final_norm = LayerNorm(weights, "norm")
        self._self_attention, self._cross_attention = (
            [Linear(split_weights, f"{name}.{part}") for part in (0, 1, 2, "out_proj")]
            for name in (_SELF_ATTENTION, _CROSS_ATTENTION)
        )
        self._feed_forward_in, self._feed_forward_out = (
            Linear(weights, f"decoder.linear{n}") for n in (1, 2)
        )
        self._to_latents, self._mix = Linear(weights, "out"), Perceptron(weights, "mix")
        self._prototypes = _normalised(weights["prototypes"]).T * np.float32(SHARPNESS)
        # Only training uses the last bias: see ``ReaderNetwork.example_scores``.
        self._bias = weights["bias"][:-1]
        self._pointer_queries, self._pointer_keys = (
            [Linear(weights, f"{name}.{number}") for number in range(2)]
            for name in ("asked", "keys")
        )

    def memory(self, states: Floats, mask: NDArray[np.integer]) -> Memory:
        """Return the memory of token states (n, tokens, size); ``mask`` is 0 for padding."""
        normalised = self._memory_norm(states)
        _, to_keys, to_values, _ = self._cross_attention
        return Memory(
            states,
            attention_mask=(mask == 0)[:, None, None] * MASKED_SCORE,
            keys=_heads(to_keys(normalised)),
            values=_heads(to_values(normalised)),
            pointer_keys=[layer(states) for layer in self._pointer_keys],
        )

    def next_sub_queries(
        self, memory: Memory, previous_templates: NDArray[np.integer], literal_weights: Floats
    ) -> NextSubQueries:
        """Return the scores of the next sub-query after n prefixes; see ``ReaderNetwork.decode``.

        ``memory`` has a message for each prefix, or one message for all prefixes.
        """
        inputs = (
            self._template_embedding[previous_templates]
            + self._position_embedding[: previous_templates.shape[1]]
            + literal_weights @ memory.states
        )
        # The next sub-query is decoded at the last position, which attends to all positions.
        to_query, to_keys, to_values, to_output = self._self_attention
        normalised = self._norms[0](inputs)
        attended = _attention(
            *map(_heads, (to_query(normalised[:, -1:]), to_keys(normalised), to_values(normalised)))
        )
        residual = inputs[:, -1:] + to_output(attended)
        to_query, _, _, to_output = self._cross_attention
        query = _heads(to_query(self._norms[1](residual)))
        residual += to_output(_attention(query, memory.keys, memory.values, memory.attention_mask))
        inner = self._feed_forward_in(self._norms[2](residual))
        residual += self._feed_forward_out(np.maximum(inner, 0))
        decoded = self._final_norm(residual)[:, 0]
        latents = _normalised(self._to_latents(decoded))
        return NextSubQueries(decoded, latents, latents @ self._prototypes + self._bias)

    def point(
        self,
        memory: Memory,
        decoded: Floats,
        templates: NDArray[np.integer],
        slots: NDArray[np.integer],
    ) -> tuple[Floats, Floats]:
        """Return each token's logits as start and as end of n literals: two arrays (n, tokens).

        ``memory`` has a message for each literal, or one for all. See ``ReaderNetwork.point``.
        """
        literal_inputs = self._template_embedding[templates] + self._slot_embedding[slots]
        pointer_state = self._mix(np.concatenate([decoded, literal_inputs], -1))
        start, end = (
            (keys @ to_query(pointer_state)[..., None])[..., 0] / np.float32(keys.shape[-1] ** 0.5)
            for to_query, keys in zip(self._pointer_queries, memory.pointer_keys, strict=True)
        )
        return start, end


def _heads(states: Floats) -> Floats:
    """Return states (n, positions, size) split into heads: (n, heads, positions, HEAD_SIZE)."""
    return states.reshape(*states.shape[:2], -1, HEAD_SIZE).swapaxes(1, 2)


def _attention(queries: Floats, keys: Floats, values: Floats, mask: Floats | None = None) -> Floats:
    """Return attention outputs (n, positions, size) of queries (n, heads, positions, HEAD_SIZE)."""
    scores = queries @ keys.swapaxes(-1, -2) / np.float32(HEAD_SIZE**0.5)
    weights = softmax(scores if mask is None else scores + mask)
    outputs = (weights @ values).swapaxes(1, 2)
    return outputs.reshape(*outputs.shape[:2], -1)


def _normalised(vectors: Floats) -> Floats:
    """Return vectors (…, size) normalised to length 1."""
    result: Floats = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True).clip(1e-12)
    return result
