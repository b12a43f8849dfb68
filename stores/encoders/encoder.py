"""The protocol of an encoder, and the check of its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError


@runtime_checkable
class Encoder(Protocol):
    """An encoder of texts as vectors.

    For queries that are compared with passages, ``text_facet`` uses two optional attributes: the
    method ``embed_queries(texts)`` instead of ``embed``, and ``cue``, a text to put before a query.
    The search of documents uses the optional method ``answer_logits``; see ``CrossEncoder``.
    """

    @property
    def name(self) -> str:
        """The model and its version; vectors of encoders with the same name are comparable.

        The name is part of a schema's fingerprint and of the disk cache's keys.
        """

    @property
    def dimension(self) -> int:
        """The length of a vector."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as an array (n, dimension)."""


def float_rows(
    answer: Any, count: int, dimension: int | None, message_start: str
) -> NDArray[np.float32]:
    """Return a model's answer as an array (count, dimension).

    ``dimension=None`` allows any dimension. An answer of another shape or type raises
    ``InputError``, whose message begins with ``message_start``, such as "Encoder 'x' answered 3
    texts".
    """
    expected = f"({count}, {dimension or 'dimension'})"
    try:
        # A torch tensor may have a gradient, or be on a GPU.
        if hasattr(answer, "detach"):
            answer = answer.detach().cpu().float()
        # A number that is too large for a float32 becomes infinity, without a warning.
        with np.errstate(over="ignore"):
            rows = np.asarray(answer, dtype=np.float32)
    except Exception as error:
        problem = f"{message_start}, but not with an array of numbers: {error}"
        raise InputError(f"{problem}. Expected shape {expected}.") from error
    if rows.ndim != 2 or rows.shape != (count, dimension or rows.shape[1] or 1):
        raise InputError(
            f"{message_start} with an array of shape {rows.shape}; expected {expected}, one row "
            "each. Check the model; it may have changed since it was opened."
        )
    return rows


def checked_vectors(
    answer: Any, count: int, dimension: int | None, encoder_name: str
) -> NDArray[np.float32]:
    """Return an encoder's answer for ``count`` texts as an array (count, dimension), all finite."""
    message_start = f"Encoder {encoder_name!r} answered {count} texts"
    vectors = float_rows(answer, count, dimension, message_start)
    if not (finite := np.isfinite(vectors).all(axis=1)).all():
        raise InputError(
            f"Encoder {encoder_name!r} answered text {finite.argmin() + 1} of {count} with NaN or "
            "infinity. Its vectors must be finite."
        )
    return vectors
