"""MPNet (arXiv 2004.09297) as an ONNX graph with eight-bit matrix products.

The attention has a bias for each distance of two tokens. Tokens are BERT's, with other ids. Some
channels of a layer's inner states are far larger than the others, and would leave few of the eight
bits to these; factors make them alike (SmoothQuant, arXiv 2211.10438, equation 4 with an exponent
of 0.7).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from casewright.stores.encoders.four_bit import BLOCK, unpack
from casewright.stores.encoders.onnx_graph import Floats, Graph

#: The dimension of the states, the number of attention heads, and the size of the vocabulary.
WIDTH, HEADS, VOCABULARY = 768, 12, 30_527
#: Maximum number of tokens; the first position embeddings are not used.
MAX_TOKENS, UNUSED_POSITIONS = 512, 2
#: The ids of the special tokens, and the difference of an id from BERT's id of the same token.
START, PADDING, END, ID_OFFSET = 0, 1, 2, 4
#: Number of buckets of distances in each direction; half of them hold one distance each, and the
#: others hold ranges up to the largest distance.
BUCKETS, LARGEST_DISTANCE = 16, 128
#: Suffixes of names: the scales of a four-bit matrix, and the factors (4 * WIDTH,) of the inner
#: states of a layer's output.
SCALE, FACTORS = ".scale", ".factors"
#: Names of tables, and of the first normalisation.
WORDS, POSITIONS = "embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight"
DISTANCES, NORM = "encoder.relative_attention_bias.weight", "embeddings.LayerNorm"

#: Weights by their names in transformers' ``MPNetModel``, and the scales of four-bit matrices.
PackedWeights: TypeAlias = Mapping[str, NDArray[Any]]


class MPNet:
    """Reads one text at a time. Thread-safe. For ``bits`` see ``Graph``."""

    def __init__(self, weights: PackedWeights, bits: int = 32) -> None:
        self._weights = weights
        self._biases = weights[DISTANCES][_buckets(MAX_TOKENS)].transpose(2, 0, 1)
        graph = Graph(_Smoothed(weights), bits=bits)
        states = graph.layer_norm("embeddings", NORM)
        for number in range(count_layers(weights)):
            layer = f"encoder.layer.{number}"
            parts = [f"{layer}.attention.attn.{part}" for part in "qkv"]
            attended = graph.attention(states, "", HEADS, *parts, bias="bias")
            norm = f"{layer}.attention.LayerNorm"
            states, _ = graph.residual(states, attended, f"{layer}.attention.attn.o", norm)
            inner = graph.gelu(states, f"{layer}.intermediate.dense")
            output = f"{layer}.output"
            inner = graph.node("Mul", inner, graph.weight(output + FACTORS))
            states, _ = graph.residual(states, inner, f"{output}.dense", f"{output}.LayerNorm")
        self._session = graph.session(dict.fromkeys(("embeddings", "bias"), np.float32), states)

    def read(self, ids: Sequence[int]) -> Floats:
        """Return the states (tokens, WIDTH) of a text of at most ``MAX_TOKENS`` tokens."""
        count = len(ids)
        words = unpack(self._weights[WORDS][ids], self._weights[WORDS + SCALE][ids])
        positions = self._weights[POSITIONS][UNUSED_POSITIONS : UNUSED_POSITIONS + count]
        bias = np.ascontiguousarray(self._biases[None, :, :count, :count])
        states: Floats = self._session(embeddings=(words + positions)[None], bias=bias)[0][0]
        return states


def count_layers(weights: PackedWeights) -> int:
    """Return the number of layers of a network with these weights."""
    return sum(name.endswith(".intermediate.dense.bias") for name in weights)


def array_kinds(layers: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the type and the shape of each array of a network with this number of layers."""
    matrices: dict[str, tuple[int, int]] = {}
    norms = [NORM]
    for layer in (f"encoder.layer.{number}" for number in range(layers)):
        matrices |= {f"{layer}.attention.attn.{part}": (WIDTH, WIDTH) for part in "qkvo"}
        matrices[f"{layer}.intermediate.dense"] = 4 * WIDTH, WIDTH
        matrices[f"{layer}.output.dense"] = WIDTH, 4 * WIDTH
        norms += [f"{layer}.attention.LayerNorm", f"{layer}.output.LayerNorm"]
    floats: dict[str, tuple[int, ...]] = {
        POSITIONS: (MAX_TOKENS + UNUSED_POSITIONS, WIDTH),
        DISTANCES: (2 * BUCKETS, HEADS),
        **{f"encoder.layer.{n}.output{FACTORS}": (4 * WIDTH,) for n in range(layers)},
        **{f"{name}.bias": (rows,) for name, (rows, _) in matrices.items()},
        **{f"{norm}.{part}": (WIDTH,) for norm in norms for part in ("weight", "bias")},
    }
    kinds = {name: ("float32", shape) for name, shape in floats.items()}
    tables = {f"{name}.weight": shape for name, shape in matrices.items()}
    for name, (rows, columns) in (tables | {WORDS: (VOCABULARY, WIDTH)}).items():
        kinds[name] = "uint8", (rows, columns // BLOCK, BLOCK // 2)
        kinds[name + SCALE] = "float16", (rows, columns // BLOCK)
    return kinds


class Unpacked(Mapping[str, Floats]):
    """The weights of a file as float32; each is unpacked when it is read."""

    def __init__(self, weights: PackedWeights) -> None:
        self._weights = weights

    def __getitem__(self, name: str) -> Floats:
        weight = self._weights[name]
        scales = self._weights.get(name + SCALE)
        return weight if scales is None else unpack(weight, scales)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._weights if not name.endswith(SCALE))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Smoothed(Unpacked):
    """Weights for inner states that are multiplied by factors: the columns are divided by them."""

    def __getitem__(self, name: str) -> Floats:
        weight, output = super().__getitem__(name), name.removesuffix(".dense.weight")
        return weight / self[output + FACTORS] if output.endswith(".output") else weight


def _buckets(count: int) -> NDArray[np.int64]:
    """Return the bucket of the distance between each two of ``count`` positions."""
    positions = np.arange(count)
    distance = positions[:, None] - positions
    size, exact = np.abs(distance), BUCKETS // 2
    growth = np.log(np.maximum(size, 1) / exact) / np.log(LARGEST_DISTANCE / exact)
    ranges = np.minimum(exact + (growth * exact).astype(np.int64), BUCKETS - 1)
    buckets: NDArray[np.int64] = np.where(size < exact, size, ranges)
    return buckets + BUCKETS * (distance < 0)
