"""Putting ONNX graphs together from weights, without torch and without a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casewright.stores.encoders.onnx_session import inference_session

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

Floats = NDArray[np.float32]
Weights = Mapping[str, Floats]
#: ONNX Runtime's own operators, which compute several steps in one.
FUSED = "com.microsoft"
#: Outputs beside the first, where an operator has them: the sum that was normalised is used.
_MORE = {
    "EmbedLayerNormalization": ("mask",),
    "SkipLayerNormalization": ("", "", "sum"),
    "DynamicQuantizeLinear": ("scale", "zero"),
    "Split": ("1", "2"),
}


class Graph:
    """A graph and the weights that it takes.

    Args:
        weights: Of the whole network, by name.
        epsilon: Of layer normalisations.
        bits: Of the weights in matrix products: 32 for float32; 8 or 7 for integers with a scale
            for each output (Jacob et al. 2018, arXiv 1712.05877), by states of eight bits.
    """

    def __init__(self, weights: Weights, epsilon: float = 1e-5, bits: int = 32) -> None:
        self._weights, self._epsilon, self._bits = weights, epsilon, bits
        self._nodes: list[Any] = []
        self._taken: dict[str, NDArray[Any]] = {}

    def node(self, operator: str, *inputs: str, domain: str = "", **settings: Any) -> str:
        """Add an operator and return the name of its first output."""
        from onnx.helper import make_node

        output = f"{operator}{len(self._nodes)}"
        outputs = [output, *(name and f"{output}.{name}" for name in _MORE.get(operator, ()))]
        self._nodes.append(make_node(operator, inputs, outputs, domain=domain, **settings))
        return output

    def weight(self, name: str) -> str:
        """Return the name of a weight that is taken as it is."""
        self._taken[name] = np.ascontiguousarray(self._weights[name])
        return name

    def affine(self, *names: str) -> tuple[str, str]:
        """Return the names of weight and bias of affine maps beside each other."""
        first = names[0]
        weight = np.concatenate([self._weights[f"{name}.weight"] for name in names])
        self._taken[f"{first}.weight"] = np.ascontiguousarray(weight.T)
        self._taken[f"{first}.bias"] = np.concatenate([self._weights[f"{n}.bias"] for n in names])
        return f"{first}.weight", f"{first}.bias"

    def linear(self, states: str, *names: str) -> str:
        """Return affine maps of states, beside each other."""
        weight, bias = self.affine(*names)
        return self.node("Add", self._product(states, weight), bias)

    def gelu(self, states: str, name: str) -> str:
        """Return an affine map of states with a GELU after it."""
        weight, bias = self.affine(name)
        return self.node("BiasGelu", self._product(states, weight), bias, domain=FUSED)

    def attended(self, states: str, mask: str, heads: int, *names: str) -> str:
        """Return what each of some states sees of all that a mask does not hide.

        Args:
            states: Their name.
            mask: The mask's, 1 for what is there (n, places).
            heads: How many of them look.
            names: The affine maps to queries, keys and values.
        """
        if self._bits == 32:
            own = self.affine(*names)
            return self.node("Attention", states, *own, mask, domain=FUSED, num_heads=heads)
        queries = self.node("Split", self.linear(states, *names), axis=-1)
        parts = (f"{queries}.1", f"{queries}.2", "", mask)
        return self.node("MultiHeadAttention", queries, *parts, domain=FUSED, num_heads=heads)

    def _product(self, states: str, weight: str) -> str:
        if self._bits == 32:
            return self.node("MatMul", states, weight)
        most = 2 ** (self._bits - 1) - 1
        numbers = self._taken[weight]
        scale = np.abs(numbers).max(0).clip(1e-12) / np.float32(most)
        self._taken[weight] = np.rint(numbers / scale).astype(np.int8)
        self._taken[f"{weight}.scale"] = scale
        small = self.node("DynamicQuantizeLinear", states)
        parts = (weight, f"{small}.scale", f"{weight}.scale", f"{small}.zero")
        return self.node("MatMulIntegerToFloat", small, *parts, domain=FUSED)

    def normalised(self, states: str, name: str) -> str:
        """Return the layer normalisation of states."""
        parts = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.node("LayerNormalization", states, *parts, epsilon=self._epsilon)

    def added(self, total: str, states: str, name: str, norm: str) -> tuple[str, str]:
        """Return a total and an affine map of states together: normalised, and as they are."""
        weight, bias = self.affine(name)
        parts = self.weight(f"{norm}.weight"), self.weight(f"{norm}.bias"), bias
        product = self._product(states, weight)
        output = self.node(
            "SkipLayerNormalization",
            product,
            total,
            *parts,
            domain=FUSED,
            epsilon=self._epsilon,
        )
        return output, f"{output}.sum"

    def reshaped(self, states: str, *shape: int) -> str:
        """Return states in another shape; 0 keeps a dimension, -1 is what is left."""
        return self.node("Reshape", states, self.node("Constant", value_ints=shape))

    def opened(self, inputs: Mapping[str, type], *outputs: str, threads: int = 0) -> Session:
        """Return the graph, ready to run.

        Args:
            inputs: Their types by name, NumPy's.
            outputs: Their names, of float32.
            threads: How many compute; 0 for one a core.
        """
        from onnx import helper

        def described(name: str, kind: type) -> Any:
            return helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), None
            )

        graph = helper.make_graph(
            self._nodes,
            "casewright",
            [described(name, kind) for name, kind in inputs.items()],
            [described(name, np.float32) for name in outputs],
            [_elsewhere(name, weight) for name, weight in self._taken.items()],
        )
        domains = [helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)]
        # The version of the format that opset 17 came with.
        model = helper.make_model(graph, opset_imports=domains, ir_version=8)
        return Session(
            inference_session(model.SerializeToString(), threads, self._taken), self._taken
        )


class Session:
    """A graph that runs. Thread-safe."""

    def __init__(self, session: InferenceSession, weights: Mapping[str, NDArray[Any]]) -> None:
        # The session reads the weights where they are.
        self._session, self._weights = session, weights

    def __call__(self, **inputs: NDArray[Any]) -> Sequence[Floats]:
        """Return the outputs in order."""
        outputs: Sequence[Floats] = self._session.run(None, inputs)
        return outputs


def _elsewhere(name: str, weight: NDArray[Any]) -> Any:
    """Return a constant whose numbers ONNX Runtime is handed beside the model."""
    from onnx import StringStringEntryProto, TensorProto, helper

    described = {"location": "memory", "offset": "0", "length": str(weight.nbytes)}
    return TensorProto(
        name=name,
        data_type=helper.np_dtype_to_tensor_dtype(weight.dtype),
        dims=weight.shape,
        data_location=TensorProto.EXTERNAL,
        external_data=[
            StringStringEntryProto(key=key, value=value) for key, value in described.items()
        ],
    )
