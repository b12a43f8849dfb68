"""Embeddings that were made once are not made again: in memory, and on disk by model and text."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.stores.encoders.checked import checked_vectors
from casewright.stores.encoders.encoder import Encoder
from casewright.stores.encoders.vector_file import VectorFile

#: Vectors kept in memory: at 384 dimensions, 4,096 of them are 6 MB.
MEMORY_ENTRIES = 4096
#: Before the key of a query that its encoder embeds apart: no byte of UTF-8, so in no other key.
QUERY = b"\xff"


class CachedEncoder:
    """An encoder with a cache in memory and, where a folder is given, on disk.

    The disk cache is one SQLite file; its key is the SHA-256 of the encoder's name and the text.
    A cache that cannot be read or written is left aside, and a vector that is not as it was
    written is made anew.

    Attributes:
        encoder: What is cached.
        name: Its name.
        dimension: Its vectors' length.
        cue: The text that it wants before a query that is compared with passages; empty where it
            declares none.
    """

    def __init__(self, encoder: Encoder, folder: Path | None = None) -> None:
        self.encoder = encoder
        self.name = encoder.name
        self.dimension = encoder.dimension
        self.cue: str = getattr(encoder, "cue", "")
        self._memory: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.RLock()
        self._file = VectorFile(folder, self.dimension)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as an array (n, dimension); equal texts are encoded once.

        Raises:
            InputError: The encoder answered with what is no finite vector of its dimension a text.
        """
        return self._cached(texts, self.encoder.embed, b"")

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n queries as an array (n, dimension), as texts where the encoder has one way only.

        Raises:
            InputError: The encoder answered with what is no finite vector of its dimension a text.
        """
        apart = getattr(self.encoder, "embed_queries", None)
        return self.embed(texts) if apart is None else self._cached(texts, apart, QUERY)

    def _cached(
        self, texts: Sequence[str], encode: Callable[[list[str]], Any], kind: bytes
    ) -> NDArray[np.float32]:
        keys = [self._key(text, kind) for text in texts]
        with self._lock:
            known = {key: self._memory[key] for key in keys if key in self._memory}
            if len(known) < len(set(keys)):
                known |= self._file.read([key for key in set(keys) if key not in known])
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            answer = encode(list(missing.values()))
            made = checked_vectors(answer, len(missing), self.dimension, self.name)
            fresh = dict(zip(missing, made, strict=True))
            known |= fresh
            # One text is a question: cheap to encode, and nobody's business on disk.
            if len(fresh) > 1:
                with self._lock:
                    self._file.write(fresh)
        with self._lock:
            for key in keys:
                self._memory[key] = known[key]
                self._memory.move_to_end(key)
            while len(self._memory) > MEMORY_ENTRIES:
                self._memory.popitem(last=False)
        if not keys:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.stack([known[key] for key in keys])

    def _key(self, text: str, kind: bytes) -> bytes:
        data = f"{self.name}\0{text}".encode("utf-8", "surrogatepass")
        return hashlib.sha256(kind + data).digest()


class UncachedQuestions:
    """An encoder without its cache for single texts: what is timed is a question never seen."""

    def __init__(self, encoder: CachedEncoder) -> None:
        self._encoder = encoder
        self.name = encoder.name
        self.dimension = encoder.dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as an array (n, dimension)."""
        return (self._encoder.encoder if len(texts) == 1 else self._encoder).embed(texts)
