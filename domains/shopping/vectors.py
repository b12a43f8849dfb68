"""The shipped vectors of the shop's cases, with which its stores are built in seconds.

``python -m casewright.domains.shopping.vectors`` writes the file again after a change of the cases.
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

VECTORS = Path(__file__).parent / "data" / "vectors.safetensors"


class _RecordingEncoder:
    """An encoder that records texts instead of encoding them."""

    def __init__(self, encoder: Encoder) -> None:
        self.name, self.dimension = encoder.name, encoder.dimension
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        return np.zeros((len(texts), self.dimension), dtype=np.float32)


def main() -> None:
    """Encode the texts that the facets of the shop's cases compare, and write the file."""
    encoder = MiniLMEncoder()
    recorder = _RecordingEncoder(encoder)
    for schema, make in cases.schemas(recorder).values():
        schema.vectors([case.problem for case in make()])
    write_vectors(VECTORS, encoder, recorder.texts)


if __name__ == "__main__":
    main()
