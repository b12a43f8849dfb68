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
#: Maximum padding of a run, since another run takes as long as twenty tokens to read the weights.
MAX_PADDING = 20
#: The ids and types (2, tokens) of a text, and the future of its states.
_Text: TypeAlias = tuple[NDArray[Any], "Future[Floats]"]
#: The names of operators' outputs after the first.
_OUTPUTS = {
    "EmbedLayerNormalization": ("mask",),
    "DynamicQuantizeLinear": ("scale", "zero"),
    "Split": ("1", "2"),
}


class Graph:
    """A graph under construction, with the network's weights by name.

    Methods take and return the names of values in the graph, such as ``states``.
    Weights in matrix products have 32 ``bits`` (float32), or 8 or 7. These are integers with a
    scale for each output (Jacob et al. 2018, arXiv 1712.05877), and states then have eight bits.
    """

    def __init__(self, weights: Weights, epsilon: float = 1e-5, bits: int = 32) -> None:
        self._weights, self._epsilon, self._bits = weights, epsilon, bits
        self._nodes: list[bytes] = []
        self._used: dict[str, NDArray[Any]] = {}

    def node(self, operator: str, *inputs: str, domain: str = "", **settings: Any) -> str:
        """Add an operator and return the name of its first output."""
        output = f"{operator}{len(self._nodes)}"
        outputs = [output, *(f"{output}.{name}" for name in _OUTPUTS.get(operator, ()))]
        self._nodes.append(onnx_format.node(operator, inputs, outputs, domain=domain, **settings))
        return output

    def weight(self, name: str) -> str:
        """Add a weight unchanged, and return its name."""
        self._used[name] = np.ascontiguousarray(self._weights[name])
        return name

    def affine(self, *names: str) -> tuple[str, str]:
        """Add the weights of affine maps, concatenated; return the names of weight and bias."""
        first = names[0]
        weight = np.concatenate([self._weights[f"{name}.weight"] for name in names])
        self._used[f"{first}.weight"] = np.ascontiguousarray(weight.T)
        self._used[f"{first}.bias"] = np.concatenate([self._weights[f"{n}.bias"] for n in names])
        return f"{first}.weight", f"{first}.bias"

    def linear(self, states: str, *names: str) -> str:
        """Return the concatenated affine maps of states."""
        weight, bias = self.affine(*names)
        return self.node("Add", self._product(states, weight), bias)

    def gelu(self, states: str, name: str) -> str:
        """Return the GELU of an affine map of states."""
        weight, bias = self.affine(name)
        return self.node("BiasGelu", self._product(states, weight), bias, domain=FUSED)

    def attention(self, states: str, mask: str, heads: int, *names: str, bias: str = "") -> str:
        """Return the self-attention of states, by affine maps to queries, keys and values.

        Args:
            mask: Name of the mask (n, positions), 1 for positions to attend to; may be empty.
            bias: Name of the addends to the scores (n, heads, positions, positions); may be empty.
        """
        if self._bits == 32:
            parts = (*self.affine(*names), mask, "", bias)
            return self.node("Attention", states, *parts, domain=FUSED, num_heads=heads)
        queries = self.node("Split", self.linear(states, *names), axis=-1)
        parts = (f"{queries}.1", f"{queries}.2", "", mask, bias)
        return self.node("MultiHeadAttention", queries, *parts, domain=FUSED, num_heads=heads)

    def _product(self, states: str, weight: str) -> str:
        if self._bits == 32:
            return self.node("MatMul", states, weight)
        max_integer = 2 ** (self._bits - 1) - 1
        matrix = self._used[weight]
        scale = np.abs(matrix).max(0).clip(1e-12) / np.float32(max_integer)
        self._used[weight] = np.rint(matrix / scale).astype(np.int8)
        self._used[f"{weight}.scale"] = scale
        quantized = self.node("DynamicQuantizeLinear", states)
        parts = (weight, f"{quantized}.scale", f"{weight}.scale", f"{quantized}.zero")
        return self.node("MatMulIntegerToFloat", quantized, *parts, domain=FUSED)

    def layer_norm(self, states: str, name: str) -> str:
        """Return the layer normalisation of states."""
        parts = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.node("LayerNormalization", states, *parts, epsilon=self._epsilon)

    def residual(self, stream: str, states: str, name: str, norm: str) -> tuple[str, str]:
        """Add an affine map of states to a residual stream; return the sum, normalised and raw."""
        # The fused SkipLayerNormalization takes more time on a CPU.
        stream = self.node("Add", self.linear(states, name), stream)
        return self.layer_norm(stream, norm), stream

    def reshape(self, states: str, *shape: int) -> str:
        """Return states in another shape; 0 keeps a dimension, -1 is inferred."""
        return self.node("Reshape", states, self.node("Constant", value_ints=shape))

    def session(self, inputs: Mapping[str, type], *outputs: str, threads: int = 0) -> OnnxSession:
        """Return a session of the graph with inputs of NumPy types and outputs of float32."""
        floats = dict.fromkeys(outputs, np.float32)
        model = onnx_format.model(self._nodes, inputs, floats, self._used, FUSED)
        return OnnxSession(inference_session(model, threads, self._used), self._used)


class OnnxSession:
    """A runnable graph. Thread-safe."""

    def __init__(self, session: InferenceSession, weights: Mapping[str, NDArray[Any]]) -> None:
        # The session does not copy the weights.
        self._session, self._weights = session, weights

    def __call__(self, **inputs: NDArray[Any]) -> Sequence[Floats]:
        """Return the outputs in order."""
        return list(self._session.run(None, inputs))


def inference_session(
    model: Path | bytes, threads: int = 0, weights: Mapping[str, NDArray[Any]] | None = None
) -> InferenceSession:
    """Open a model, a file or its bytes, on the CPU, with threads that do not busy-wait.

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
    """Yield the indices of texts of these sizes, shortest first, in batches of similar size."""
    rows: list[int] = []
    for row in sorted(range(len(sizes)), key=sizes.__getitem__):
        padded_size = sizes[row] * (len(rows) + 1)
        padding = padded_size - sizes[row] - sum(sizes[other] for other in rows)
        if rows and (padded_size > MAX_BATCH_TOKENS or padding > MAX_PADDING):
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


class Bert:
    """A thread-safe BERT encoder; its weights' names begin with ``prefix``. See ``Graph``."""

    #: Set to false to run the model for each text alone, in all encoders of the process.
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
            attended = graph.attention(states, "mask", heads, *parts)
            output = f"{layer}.attention.output"
            states, _ = graph.residual(states, attended, f"{output}.dense", f"{output}.LayerNorm")
            inner = graph.gelu(states, f"{layer}.intermediate.dense")
            output = f"{layer}.output"
            states, _ = graph.residual(states, inner, f"{output}.dense", f"{output}.LayerNorm")
        self._session = graph.session(dict.fromkeys(("ids", "types", "mask"), np.int32), states)
        # Eight-bit states share one scale per run: a text's states would depend on other texts.
        self._batches_texts = bits == 32
        self._waiting: deque[_Text] = deque()
        self._run_lock = threading.Lock()

    def read(self, ids: Sequence[int], types: Sequence[int]) -> Floats:
        """Return the states (tokens, width) of one text's tokens.

        Texts that wait while the model runs share its next run, since a run mostly reads weights.
        """
        tokens = np.array([ids, types])
        if not (self._batches_texts and self.shares_runs):
            states: Floats = self(tokens[:1], tokens[1:], np.ones_like(tokens[:1]))[0]
            return states
        text: _Text = tokens, Future()
        self._waiting.append(text)
        with self._run_lock:
            # Another thread's run may have included this text.
            if not text[1].done():
                self._run_batch([self._waiting.popleft() for _ in range(len(self._waiting))])
        return text[1].result()

    def _run_batch(self, texts: Sequence[_Text]) -> None:
        widths = [tokens.shape[1] for tokens, _ in texts]
        for rows in in_batches(widths):
            try:
                parts = np.zeros((3, len(rows), widths[rows[-1]]), dtype=np.int32)
                for i, row in enumerate(rows):
                    parts[:2, i, : widths[row]], parts[2, i, : widths[row]] = texts[row][0], 1
                for row, states in zip(rows, self(*parts), strict=True):
                    texts[row][1].set_result(states[: widths[row]])
            except BaseException as error:  # noqa: BLE001 - raised where each text is waited for
                for row in rows:
                    texts[row][1].set_exception(error)

    def __call__(self, ids: NDArray[Any], types: NDArray[Any], mask: NDArray[Any]) -> Floats:
        """Return the hidden states (n, tokens, width) of the tokens of n texts.

        Args:
            ids: Token ids, (n, tokens).
            types: 0 for tokens of the first text, 1 for the second, (n, tokens).
            mask: 1 for tokens, 0 for padding after them, (n, tokens).
        """
        inputs = {"ids": ids, "types": types, "mask": mask}
        return self._session(**{name: array.astype(np.int32) for name, array in inputs.items()})[0]


def fitting_bits(cpu: Path = Path("/proc/cpuinfo")) -> int:
    """Return the number of bits of an integer weight that fits this processor: 8, or 7.

    Without VNNI, AVX2 sums two products of eight-bit numbers in sixteen bits, which may overflow.
    """
    try:
        flags = cpu.read_text(encoding="utf-8")
    except OSError:
        return 7
    return 8 if "vnni" in flags or "asimddp" in flags else 7
