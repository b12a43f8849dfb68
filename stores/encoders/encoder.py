"""What an encoder is: texts in, vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors.

    An encoder may have more, which ``text_facet`` then uses for queries that are compared with
    another kind of text: ``embed_queries(texts)``, where the model embeds queries apart, and
    ``cue``, a text that it wants before a query.

    Attributes:
        name: Identifies model and version; vectors of equal names are comparable. Part of the
            fingerprint of a schema and of the disk cache's key.
        dimension: Length of a vector.
    """

    @property
    def name(self) -> str:
        """Identifies model and version."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as an array (n, dimension)."""
