"""Encoders for tests: they are fast and deterministic, and record the texts of each call."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class HashingEncoder:
    """A hashed bag of words: texts with common words are similar, equally on every machine.

    Attributes:
        calls: The texts of each call, in order.
    """

    def __init__(self, dimension: int = 32, name: str = "") -> None:
        self.dimension = dimension
        self.name = name or f"hashing-{dimension}"
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the embeddings of n texts, array (n, dimension)."""
        self.calls.append(list(texts))
        out = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
                number = int.from_bytes(digest, "big")
                out[row, number % self.dimension] += 1.0 if number >> 63 else -1.0
        return out


class BrokenEncoder(HashingEncoder):
    """Returns NaN for every text that contains "broken"."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the embeddings of n texts, array (n, dimension), of which some may be NaN."""
        out = super().embed(texts)
        for row, text in enumerate(texts):
            if "broken" in text:
                out[row] = np.nan
        return out
