"""Builds ONNX graphs from weights, without torch and without a file, and runs them.

``Bert`` is BERT's encoder (arXiv 1810.04805), in float32 or with eight-bit matrix products.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from casewright.stores.encoders import onnx_format

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

Floats = NDArray[np.float32]
Weights = Mapping[str, Floats]
#: The domain of ONNX Runtime's fused operators.
FUSED = "com.microsoft"
#: Dimensions of an attention head.
HEAD_SIZE = 32
#: Maximum tokens of a model run, since more do not fit in the processor's cache.
MAX_BATCH_TOKENS = 512
#: Maximum padding tokens of a run: another run costs twenty tokens' time to read the weights.
MAX_PADDING = 20
#: A text's token ids and token types (2, tokens), and the future that will hold its states.
_Text: TypeAlias = tuple[NDArray[Any], "Future[Floats]"]
#: Suffixes of the names of an operator's outputs after the first.
_OUTPUTS = {
    "EmbedLayerNormalization": ("mask",),
    "DynamicQuantizeLinear": ("scale", "zero"),
    "Split": ("1", "2"),
}


class Graph:
    """A graph under construction; ``weights`` are the network's weights by name.

    Methods take and return the names of values in the graph, such as ``states``. Weights in matrix
    products have 32 ``bits`` (float32), 8 or 7. Weights of 8 or 7 bits are integers with a scale
    for each output (Jacob et al. 2018, arXiv 1712.05877), and are multiplied by eight-bit states.
    """

    def __init__(self, weights: Weights, epsilon: float = 1e-5, bits: int = 32) -> None:
        self._weights, self._epsilon, self._bits = weights, epsilon, bits
        self._nodes: list[bytes] = []
        self._used_weights: dict[str, NDArray[Any]] = {}

    def node(self, operator: str, *inputs: str, domain: str = "", **settings: Any) -> str:
        """Add an operator and return the name of its first output; an empty input is left out."""
        output = f"{operator}{len(self._nodes)}"
        outputs = [output, *(f"{output}.{name}" for name in _OUTPUTS.get(operator, ()))]
        self._nodes.append(onnx_format.node(operator, inputs, outputs, domain=domain, **settings))
        return output

    def weight(self, name: str) -> str:
        """Add a weight unchanged, and return its name."""
        self._used_weights[name] = np.ascontiguousarray(self._weights[name])
        return name

    def affine_weights(self, *names: str) -> tuple[str, str]:
        """Join the weights of affine maps; return the names of the joint weight and bias."""
        weight_name, bias_name = f"{names[0]}.weight", f"{names[0]}.bias"
        weight = np.concatenate([self._weights[f"{name}.weight"] for name in names])
        bias = np.concatenate([self._weights[f"{name}.bias"] for name in names])
        self._used_weights |= {weight_name: np.ascontiguousarray(weight.T), bias_name: bias}
        return weight_name, bias_name

    def linear(self, states: str, *names: str) -> str:
        """Return the concatenated affine maps of states."""
        weight, bias = self.affine_weights(*names)
        return self.node("Add", self._product(states, weight), bias)

    def gelu(self, states: str, name: str) -> str:
        """Return the GELU of an affine map of states."""
        weight, bias = self.affine_weights(name)
        return self.node("BiasGelu", self._product(states, weight), bias, domain=FUSED)

    def attention(self, states: str, heads: int, *names: str, mask: str, bias: str = "") -> str:
        """Return the self-attention of states; ``names`` map states to queries, keys and values.

        Args:
            mask: Name of the mask (n, positions), 1 for positions to attend to; may be empty.
            bias: Name of the addends to the scores (n, heads, positions, positions); may be empty.
        """
        if self._bits == 32:
            parts = (*self.affine_weights(*names), mask, "", bias)
            return self.node("Attention", states, *parts, domain=FUSED, num_heads=heads)
        queries = self.node("Split", self.linear(states, *names), axis=-1)
        parts = (f"{queries}.1", f"{queries}.2", "", mask, bias)
        return self.node("MultiHeadAttention", queries, *parts, domain=FUSED, num_heads=heads)

    def _product(self, states: str, weight: str) -> str:
        """Return states times a weight, which is replaced by integers if ``bits`` are below 32."""
        if self._bits == 32:
            return self.node("MatMul", states, weight)
        max_integer = 2 ** (self._bits - 1) - 1
        matrix = self._used_weights[weight]
        scale = np.abs(matrix).max(0).clip(1e-12) / np.float32(max_integer)
        self._used_weights[weight] = np.rint(matrix / scale).astype(np.int8)
        self._used_weights[f"{weight}.scale"] = scale
        quantized = self.node("DynamicQuantizeLinear", states)
        parts = (weight, f"{quantized}.scale", f"{weight}.scale", f"{quantized}.zero")
        return self.node("MatMulIntegerToFloat", quantized, *parts, domain=FUSED)

    def layer_norm(self, states: str, name: str) -> str:
        """Return the layer normalisation of states."""
        parts = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.node("LayerNormalization", states, *parts, epsilon=self._epsilon)

    def residual(self, stream: str, states: str, name: str, norm: str) -> tuple[str, str]:
        """Add an affine map to a residual stream; return the normalised sum and the sum itself."""
        # The fused SkipLayerNormalization would take more time on a CPU.
        stream = self.node("Add", self.linear(states, name), stream)
        return self.layer_norm(stream, norm), stream

    def reshape(self, states: str, *shape: int) -> str:
        """Return states in another shape; 0 keeps a dimension, -1 is inferred."""
        return self.node("Reshape", states, self.node("Constant", value_ints=shape))

    def session(self, inputs: Mapping[str, type], *outputs: str, threads: int = 0) -> OnnxSession:
        """Return a session of the graph with inputs of NumPy types and outputs of float32."""
        output_types, weights = dict.fromkeys(outputs, np.float32), self._used_weights
        model = onnx_format.model(self._nodes, inputs, output_types, weights, FUSED)
        return OnnxSession(inference_session(model, threads, weights), weights)


class OnnxSession:
    """A runnable graph. Thread-safe."""

    def __init__(self, session: InferenceSession, weights: Mapping[str, NDArray[Any]]) -> None:
        # The weights are kept, since the session does not copy them.
        self._session, self._weights = session, weights

    def __call__(self, **inputs: NDArray[Any]) -> Sequence[Floats]:
        """Return the outputs in order."""
        return list(self._session.run(None, inputs))


def inference_session(
    model: Path | bytes, threads: int = 0, weights: Mapping[str, NDArray[Any]] | None = None
) -> InferenceSession:
    """Open a model, given as a file or as bytes, on the CPU, with threads that do not busy-wait.

    Threads that busy-wait, ONNX Runtime's default, would take cores from other work. ``threads=0``
    starts a thread for each core. ``weights`` are the model's external weights, which the session
    does not copy: keep them as long as the session.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if weights:
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        options.add_external_initializers(list(weights), values)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def in_batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches of texts of similar size, as indices into ``sizes``, shortest texts first."""
    batch: list[int] = []
    for index in sorted(range(len(sizes)), key=sizes.__getitem__):
        padded_size = sizes[index] * (len(batch) + 1)
        padding = padded_size - sizes[index] - sum(sizes[other] for other in batch)
        if batch and (padded_size > MAX_BATCH_TOKENS or padding > MAX_PADDING):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


class Bert:
    """A thread-safe BERT encoder of the weights with a ``prefix``. For ``bits`` see ``Graph``."""

    #: False makes all encoders of the process run their models for each text alone.
    shares_runs = True

    def __init__(self, weights: Weights, prefix: str = "", *, bits: int = 32) -> None:
        graph = Graph(weights, epsilon=1e-12, bits=bits)
        tables = ("word_embeddings", "position_embeddings", "token_type_embeddings", "LayerNorm")
        parts = [graph.weight(f"{prefix}embeddings.{table}.weight") for table in tables]
        parts.append(graph.weight(f"{prefix}embeddings.LayerNorm.bias"))
        inputs = "ids", "types", *parts
        states = graph.node("EmbedLayerNormalization", *inputs, domain=FUSED, epsilon=1e-12)
        heads = len(weights[f"{prefix}embeddings.LayerNorm.bias"]) // HEAD_SIZE
        for number in range(sum(name.endswith(".intermediate.dense.bias") for name in weights)):
            layer = f"{prefix}encoder.layer.{number}"
            parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
            attended = graph.attention(states, heads, *parts, mask="mask")
            output = f"{layer}.attention.output"
            states, _ = graph.residual(states, attended, f"{output}.dense", f"{output}.LayerNorm")
            inner = graph.gelu(states, f"{layer}.intermediate.dense")
            output = f"{layer}.output"
            states, _ = graph.residual(states, inner, f"{output}.dense", f"{output}.LayerNorm")
        self._session = graph.session(dict.fromkeys(("ids", "types", "mask"), np.int32), states)
        # Eight-bit states of one run share a scale, so a text's states would depend on other texts.
        self._batches_texts = bits == 32
        self._waiting: deque[_Text] = deque()
        self._run_lock = threading.Lock()

    def read(self, ids: Sequence[int], types: Sequence[int]) -> Floats:
        """Return the states (tokens, width) of one text's tokens.

        Texts that wait for a run to end share the next one: reading the weights takes most time.
        """
        tokens = np.array([ids, types])
        if not (self._batches_texts and self.shares_runs):
            states: Floats = self(tokens[:1], tokens[1:], np.ones_like(tokens[:1]))[0]
            return states
        future: Future[Floats] = Future()
        self._waiting.append((tokens, future))
        with self._run_lock:
            # Another thread's run may have included this text.
            if not future.done():
                self._run_batch([self._waiting.popleft() for _ in range(len(self._waiting))])
        return future.result()

    def _run_batch(self, texts: Sequence[_Text]) -> None:
        widths = [tokens.shape[1] for tokens, _ in texts]
        for batch in in_batches(widths):
            try:
                inputs = np.zeros((3, len(batch), widths[batch[-1]]), dtype=np.int32)
                for row, index in enumerate(batch):
                    inputs[:2, row, : widths[index]] = texts[index][0]
                    inputs[2, row, : widths[index]] = 1  # the mask
                for index, states in zip(batch, self(*inputs), strict=True):
                    texts[index][1].set_result(states[: widths[index]])
            except BaseException as error:  # noqa: BLE001 - raised where each text is waited for
                for index in batch:
                    texts[index][1].set_exception(error)

    def __call__(self, ids: NDArray[Any], types: NDArray[Any], mask: NDArray[Any]) -> Floats:
        """Return the hidden states (n, tokens, width) of the tokens of n texts.

        Args:
            ids: Token ids, (n, tokens).
            types: 0 for tokens of a text's first segment, 1 for its second, (n, tokens).
            mask: 1 for tokens, 0 for padding after them, (n, tokens).
        """
        inputs = {"ids": ids, "types": types, "mask": mask}
        return self._session(**{name: array.astype(np.int32) for name, array in inputs.items()})[0]


def bits_for_cpu(cpu_info: Path = Path("/proc/cpuinfo")) -> int:
    """Return how many bits an integer weight can have on this processor: 8, or 7.

    Without VNNI, AVX2 sums two products of eight-bit numbers in sixteen bits, which may overflow.
    """
    try:
        flags = cpu_info.read_text(encoding="utf-8")
    except OSError:
        return 7
    return 8 if "vnni" in flags or "asimddp" in flags else 7
