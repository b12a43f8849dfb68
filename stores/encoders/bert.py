"""BERT's encoder (arXiv 1810.04805) as an ONNX graph, in float32 or with eight-bit products."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.stores.encoders.onnx_graph import FUSED, Floats, Graph, Weights

#: Dimensions of an attention head.
HEAD = 32


class Bert:
    """Reads tokens. Thread-safe.

    Args:
        weights: Of the network, by name.
        prefix: Before the names of the encoder's own.
        bits: Of the linear maps' weights: 32, or 8 or 7 as ``Graph`` has them.
    """

    def __init__(self, weights: Weights, prefix: str = "", *, bits: int = 32) -> None:
        graph = Graph(weights, epsilon=1e-12, bits=bits)
        tables = ("word_embeddings", "position_embeddings", "token_type_embeddings", "LayerNorm")
        parts = [graph.weight(f"{prefix}embeddings.{table}.weight") for table in tables]
        parts.append(graph.weight(f"{prefix}embeddings.LayerNorm.bias"))
        states = graph.node(
            "EmbedLayerNormalization", "ids", "types", *parts, domain=FUSED, epsilon=1e-12
        )
        heads = len(weights[f"{prefix}embeddings.LayerNorm.bias"]) // HEAD
        for number in range(sum(name.endswith(".intermediate.dense.bias") for name in weights)):
            layer = f"{prefix}encoder.layer.{number}"
            parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
            seen = graph.attended(states, "mask", heads, *parts)
            output = f"{layer}.attention.output"
            states, _ = graph.added(states, seen, f"{output}.dense", f"{output}.LayerNorm")
            inner = graph.gelu(states, f"{layer}.intermediate.dense")
            output = f"{layer}.output"
            states, _ = graph.added(states, inner, f"{output}.dense", f"{output}.LayerNorm")
        self._session = graph.opened(dict.fromkeys(("ids", "types", "mask"), np.int32), states)

    def __call__(self, ids: NDArray[Any], types: NDArray[Any], mask: NDArray[Any]) -> Floats:
        """Return the states (n, tokens, width) of n texts' tokens.

        Args:
            ids: Of the tokens, (n, tokens).
            types: 0 for tokens of a first text, 1 for those of a second, (n, tokens).
            mask: 1 for tokens, 0 for padding after them, (n, tokens).
        """
        given = {"ids": ids, "types": types, "mask": mask}
        return self._session(**{name: array.astype(np.int32) for name, array in given.items()})[0]


def fitting_bits(cpu: Path = Path("/proc/cpuinfo")) -> int:
    """Return how many bits an integer weight may have on this processor: 8, or 7.

    Without VNNI, AVX2 sums two products of eight-bit numbers in sixteen bits, which may overflow.
    """
    try:
        flags = cpu.read_text(encoding="utf-8")
    except OSError:
        return 7
    return 8 if "vnni" in flags or "asimddp" in flags else 7
