"""MPNet (arXiv 2004.09297) as an ONNX graph.

The attention has a bias for each distance of two tokens. Tokens are BERT's, with other ids. In a
layer's inner states, some channels are far larger than the others. In an eight-bit matrix product,
large channels would leave few bits for the others. So each channel is multiplied by a factor, and
the channels become similar (SmoothQuant, arXiv 2211.10438, equation 4 with an exponent of 0.7).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from casewright.stores.encoders.four_bit import unpack
from casewright.stores.encoders.mpnet_weights import (
    ATTENTION_HEADS,
    BUCKETS,
    DISTANCES,
    MAX_TOKENS,
    NORM,
    POSITIONS,
    SCALE,
    SMOOTHING,
    UNUSED_POSITIONS,
    WORDS,
    PackedWeights,
    Unpacked,
    count_layers,
)
from casewright.stores.encoders.onnx_graph import Floats, Graph

#: The ids of the special tokens.
START, PADDING, END = 0, 1, 2
#: A token's id is BERT's id of the same token plus this number.
ID_OFFSET = 4
#: Half of the buckets are for one distance each, the others for ranges up to this distance.
LARGEST_DISTANCE = 128


class MPNet:
    """MPNet's network, which reads one text at a time. Thread-safe. For ``bits`` see ``Graph``."""

    def __init__(self, weights: PackedWeights, bits: int = 32) -> None:
        self._words, self._scales = weights[WORDS], weights[WORDS + SCALE]
        self._positions = weights[POSITIONS][UNUSED_POSITIONS:]
        self._biases, self._buckets = weights[DISTANCES].T, _buckets(MAX_TOKENS)
        graph = Graph(_Smoothed(weights), bits=bits)
        states = graph.layer_norm("embeddings", NORM)
        for number in range(count_layers(weights)):
            layer = f"encoder.layer.{number}"
            parts = [f"{layer}.attention.attn.{part}" for part in "qkv"]
            attended = graph.attention(states, ATTENTION_HEADS, *parts, mask="", bias="bias")
            norm = f"{layer}.attention.LayerNorm"
            states, _ = graph.residual(states, attended, f"{layer}.attention.attn.o", norm)
            inner = graph.gelu(states, f"{layer}.intermediate.dense")
            output = f"{layer}.output"
            inner = graph.node("Mul", inner, graph.weight(output + SMOOTHING))
            states, _ = graph.residual(states, inner, f"{output}.dense", f"{output}.LayerNorm")
        self._session = graph.session(dict.fromkeys(("embeddings", "bias"), np.float32), states)

    def read(self, ids: Sequence[int]) -> Floats:
        """Return the states (tokens, WIDTH) of a text of at most ``MAX_TOKENS`` tokens."""
        count = len(ids)
        embeddings = unpack(self._words[ids], self._scales[ids]) + self._positions[:count]
        bias = self._biases[None, :, self._buckets[:count, :count]]
        states: Floats = self._session(embeddings=embeddings[None], bias=bias)[0][0]
        return states


class _Smoothed(Unpacked):
    """Weights whose columns are divided by the factors of the inner states, to undo the factors."""

    def __getitem__(self, name: str) -> Floats:
        weight, prefix = super().__getitem__(name), name.removesuffix(".dense.weight")
        return weight / self[prefix + SMOOTHING] if prefix.endswith(".output") else weight


def _buckets(count: int) -> NDArray[np.int8]:
    """Return the buckets (count, count) of the distances between ``count`` positions."""
    positions = np.arange(count)
    distance = positions[:, None] - positions
    magnitude, half, offset = np.abs(distance), BUCKETS // 2, BUCKETS * (distance < 0)
    fraction = np.log(np.maximum(magnitude, 1) / half) / np.log(LARGEST_DISTANCE / half)
    range_buckets = np.minimum(half + (fraction * half).astype(np.int64), BUCKETS - 1)
    buckets: NDArray[np.int64] = np.where(magnitude < half, magnitude, range_buckets) + offset
    return buckets.astype(np.int8)
