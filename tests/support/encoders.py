"""Encoders for tests: fast, deterministic, and they remember what they were asked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class HashingEncoder:
    """A bag of hashed words: texts that share words are near, on every machine alike.

    Attributes:
        calls: The texts of each call, in order.
    """

    def __init__(self, dimension: int = 32, name: str = "") -> None:
        self.dimension = dimension
        self.name = name or f"hashing-{dimension}"
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as an array (n, dimension)."""
        self.calls.append(list(texts))
        out = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
                number = int.from_bytes(digest, "big")
                out[row, number % self.dimension] += 1.0 if number >> 63 else -1.0
        return out


class BrokenEncoder(HashingEncoder):
    """Answers with NaN for every text that holds the word ``broken``."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as an array (n, dimension), some rows of it NaN."""
        out = super().embed(texts)
        for row, text in enumerate(texts):
            if "broken" in text:
                out[row] = np.nan
        return out
