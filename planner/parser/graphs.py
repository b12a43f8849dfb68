"""The plan parser's layers as ONNX graphs.

Joint layers encode a message together with a toolbox; decoding layers decode the plan. Both are
layers of a pre-norm Transformer. The attention of joint layers has a bias for each pair of nodes:
words, context fields and the toolbox's nodes (RAT-SQL, arXiv 1911.04942). In names of weights,
``into`` (joint layers) and ``own`` (decoding layers) stand for self-attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.stores.encoders.onnx_graph import FUSED, HEAD_SIZE, Floats, Graph, Weights

#: Names of the decoding layers of steps, and of the decoding layer of a step's arguments.
STEP_LAYERS, ARGUMENT_LAYER = ("steps.0", "steps.1"), "argument.0"
#: For each decoding layer, keys and values (1, heads, nodes, HEAD_SIZE) of the joint layers'
#: output; and ``present`` (1, nodes), 0 for padding.
LayerMemory = dict[str, NDArray[Any]]


class JointLayers:
    """Encodes a message together with a toolbox. Thread-safe. For ``bits`` see ``Graph``."""

    def __init__(self, weights: Weights, bits: int = 32) -> None:
        graph = Graph(weights, bits=bits)
        self.layer_count = sum(name.endswith(".into.bias") for name in weights)
        heads = len(weights["norm.bias"]) // HEAD_SIZE
        norms = [*(f"layers.{number}.norm" for number in range(self.layer_count)), "norm"]
        normed, residual = graph.layer_norm("states", norms[0]), "states"
        for number in range(self.layer_count):
            layer, bias = f"layers.{number}", f"bias{number}"
            attended = graph.attention(normed, heads, f"{layer}.into", mask="", bias=bias)
            norm = f"{layer}.norm_after"
            normed, residual = graph.residual(residual, attended, f"{layer}.out", norm)
            inner = graph.gelu(normed, f"{layer}.forward_layer.0")
            output = f"{layer}.forward_layer.2"
            normed, residual = graph.residual(residual, inner, output, norms[number + 1])
        decoding_layers = (*STEP_LAYERS, ARGUMENT_LAYER)
        memory = graph.linear(normed, *(f"{layer}.memory" for layer in decoding_layers))
        memory = graph.reshape(memory, -1, 2 * len(decoding_layers), heads, HEAD_SIZE)
        memory = graph.node("Transpose", memory, perm=[1, 2, 0, 3])
        inputs = ["states", *(f"bias{number}" for number in range(self.layer_count))]
        self._session = graph.session(dict.fromkeys(inputs, np.float32), normed, memory)

    def __call__(
        self, states: Floats, bias: Floats, present: NDArray[np.bool_]
    ) -> tuple[Floats, LayerMemory]:
        """Return joint states (nodes, size), and the decoding layers' keys and values of them.

        Args:
            states: States of words, context fields and the toolbox's nodes (nodes, size).
            bias: Addends to attention scores (layers, heads, nodes, nodes).
            present: False for padding (nodes,).
        """
        biases = {f"bias{number}": bias[number : number + 1] for number in range(self.layer_count)}
        joint, memory = self._session(states=states[None], **biases)
        names = _kv_names(*STEP_LAYERS, ARGUMENT_LAYER)
        keys_values = {name: memory[n : n + 1] for n, name in enumerate(names)}
        return joint[0], {**keys_values, "present": present[None].astype(np.int32)}


class Perceptrons:
    """Perceptrons with one hidden layer (GELU), all computed in one run. Thread-safe."""

    def __init__(self, weights: Weights, *names: str) -> None:
        graph = Graph(weights)
        outputs = [graph.linear(graph.gelu(name, f"{name}.0"), f"{name}.2") for name in names]
        self._names = names
        self._session = graph.session(dict.fromkeys(names, np.float32), *outputs, threads=1)

    def __call__(self, *states: Floats) -> Sequence[Floats]:
        """Return each perceptron's output (…, out) for its states (…, in)."""
        return self._session(**dict(zip(self._names, states, strict=True)))


class StepLayers:
    """The decoding layers for steps. Thread-safe."""

    def __init__(self, weights: Weights) -> None:
        graph = Graph(weights)
        normed, residual = graph.layer_norm("inputs", f"{STEP_LAYERS[0]}.norms.0"), "inputs"
        next_norms = (f"{STEP_LAYERS[1]}.norms.0", "step_norm")
        for layer, next_norm in zip(STEP_LAYERS, next_norms, strict=True):
            qkv = graph.affine_weights(f"{layer}.own")
            heads = len(weights["step_norm.bias"]) // HEAD_SIZE
            attended = graph.node(
                "Attention", normed, *qkv, domain=FUSED, num_heads=heads, unidirectional=1
            )
            if layer == STEP_LAYERS[-1]:
                # The output of the last layer is needed for the last place only.
                last = graph.node("Constant", value_ints=(-1,))
                attended = graph.node("Gather", attended, last, axis=1)
                residual = graph.node("Gather", residual, last, axis=1)
            normed, residual = _cross_attend(graph, attended, residual, layer, next_norm, heads)
        # One thread: for so few rows, a second thread would start later than the computation ends.
        inputs = {"inputs": np.float32, **_memory_inputs(*STEP_LAYERS)}
        self._session = graph.session(inputs, normed, threads=1)

    def __call__(self, inputs: Floats, memory: LayerMemory) -> Floats:
        """Return the state (n, size) after the last of the decoder's inputs (n, places, size)."""
        keys_values = {name: memory[name] for name in _memory_inputs(*STEP_LAYERS)}
        return self._session(inputs=inputs, **keys_values)[0][:, 0]


class ArgumentLayers:
    """The decoding layer for the arguments of a step. Thread-safe."""

    def __init__(self, weights: Weights) -> None:
        graph = Graph(weights)
        heads = len(weights["argument_norm.bias"]) // HEAD_SIZE
        inner = graph.gelu("joined", "mix.0")
        normed, residual = graph.residual("parameters", inner, "mix.2", f"{ARGUMENT_LAYER}.norms.0")
        qkv = graph.affine_weights(f"{ARGUMENT_LAYER}.own")
        attended = graph.node("Attention", normed, *qkv, "exists", domain=FUSED, num_heads=heads)
        normed, _ = _cross_attend(graph, attended, residual, ARGUMENT_LAYER, "argument_norm", heads)
        inputs: dict[str, type] = {
            "parameters": np.float32,
            "joined": np.float32,
            "exists": np.int32,
        }
        self._session = graph.session(inputs | _memory_inputs(ARGUMENT_LAYER), normed, threads=1)

    def __call__(
        self, parameters: Floats, joined: Floats, exists: NDArray[np.bool_], memory: LayerMemory
    ) -> Floats:
        """Return the states (n, parameters, size) of the arguments of n steps.

        Args:
            parameters: States of the parameters (n, parameters, size).
            joined: States of parameter, step and tool, concatenated (n, parameters, 3 × size).
            exists: False for padding (n, parameters).
        """
        inputs = {"parameters": parameters, "joined": joined, "exists": exists.astype(np.int32)}
        inputs |= {name: memory[name] for name in _memory_inputs(ARGUMENT_LAYER)}
        return self._session(**inputs)[0]


def _cross_attend(
    graph: Graph, attended: str, residual: str, layer: str, next_norm: str, heads: int
) -> tuple[str, str]:
    """Add a decoding layer's operators after self-attention; return the normed and raw states."""
    normed, residual = graph.residual(residual, attended, f"{layer}.own_out", f"{layer}.norms.1")
    # All rows attend to the same joint states, so the rows are joined to one.
    query = graph.reshape(graph.linear(normed, f"{layer}.query"), 1, -1, heads * HEAD_SIZE)
    memory = (f"{layer}.key", f"{layer}.value", "", "present")  # "": no bias.
    attended = graph.node("MultiHeadAttention", query, *memory, domain=FUSED, num_heads=heads)
    attended = graph.node("Reshape", attended, graph.node("Shape", normed))
    normed, residual = graph.residual(residual, attended, f"{layer}.out", f"{layer}.norms.2")
    inner = graph.gelu(normed, f"{layer}.forward_layer.0")
    return graph.residual(residual, inner, f"{layer}.forward_layer.2", next_norm)


def _memory_inputs(*layers: str) -> dict[str, type]:
    """Return the types of the inputs for the layers' attention to the joint states."""
    return {**dict.fromkeys(_kv_names(*layers), np.float32), "present": np.int32}


def _kv_names(*layers: str) -> list[str]:
    return [f"{layer}.{part}" for layer in layers for part in ("key", "value")]
