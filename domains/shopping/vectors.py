"""Writes the shipped file of vectors, so that the shop's stores are built in seconds.

After a change of the cases, run ``python -m casewright.domains.shopping.vectors``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from casewright.domains.shopping import cases
from casewright.stores.encoders.cache import write_vectors
from casewright.stores.encoders.encoder import Encoder
from casewright.stores.encoders.minilm import MiniLMEncoder

VECTORS_FILE = Path(__file__).parent / "data" / "vectors.safetensors"


class _RecordingEncoder:
    """An encoder that records texts instead of encoding them."""

    def __init__(self, encoder: Encoder) -> None:
        self.name, self.dimension = encoder.name, encoder.dimension
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        return np.zeros((len(texts), self.dimension), dtype=np.float32)


def main() -> None:
    """Encode the texts that the shop's facets compare, and write ``VECTORS_FILE``."""
    encoder = MiniLMEncoder()
    recorder = _RecordingEncoder(encoder)
    for schema, make_cases in cases.schemas(recorder).values():
        # The recorder records the texts of this call; the vectors are zeros.
        schema.vectors([case.problem for case in make_cases()])
    write_vectors(VECTORS_FILE, encoder, recorder.texts)


if __name__ == "__main__":
    main()
