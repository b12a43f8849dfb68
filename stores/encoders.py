"""Where encoders come from: the packaged model, a model's name, LangChain, LlamaIndex."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import DependencyError, InputError
from casewright.stores.encoder import Encoder
from casewright.stores.encoder_cache import CachedEncoder
from casewright.stores.minilm import MiniLMEncoder
from casewright.stores.paths import cache_folder


@cache
def default_encoder() -> CachedEncoder:
    """Return the offline encoder with its caches; one instance a process."""
    return CachedEncoder(MiniLMEncoder(), cache_folder() / "embeddings")


class SentenceTransformersEncoder:
    """Any sentence-transformers model, by name or folder; loaded from safetensors only."""

    def __init__(self, model: str, *, device: str = "cpu", batch_size: int = 32) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise DependencyError(
                f"Encoder {model!r} needs sentence-transformers. "
                "Run: pip install sentence-transformers"
            ) from error
        try:
            self._model = SentenceTransformer(
                model,
                device=device,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
        except (OSError, ValueError) as error:
            raise InputError(
                f"Encoder {model!r} could not be loaded: {str(error).splitlines()[0]}. "
                "Give a sentence-transformers model's name or a folder that holds one."
            ) from error
        self.name = f"sentence-transformers/{model}"
        # Its new name, and the one that older versions know.
        ask = getattr(self._model, "get_embedding_dimension", None)
        self.dimension = int((ask or self._model.get_sentence_embedding_dimension)() or 0)
        self._batch_size = batch_size

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as unit vectors, array (n, dimension)."""
        made = self._model.encode(
            list(texts),
            batch_size=self._batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.asarray(made, dtype=np.float32)


class _Adapted:
    """An embedding object of another library, behind the encoder's interface."""

    def __init__(self, embed: Any, name: str) -> None:
        self._embed = embed
        self.name = name
        self.dimension = len(embed(["dimension"])[0])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.asarray(self._embed(list(texts)), dtype=np.float32)


def as_encoder(source: Any, *, name: str | None = None) -> Encoder:
    """Turn what a caller has into an encoder.

    Args:
        source: An encoder; a sentence-transformers model's name; a LangChain ``Embeddings``; a
            LlamaIndex ``BaseEmbedding``.
        name: Identifies the model, where ``source`` has no name of its own.

    Raises:
        InputError: ``source`` is none of these.
    """
    if isinstance(source, str):
        return SentenceTransformersEncoder(source)
    if isinstance(source, Encoder):
        return source
    label = name or getattr(source, "model_name", None) or getattr(source, "model", None)
    label = f"{type(source).__module__.split('.')[0]}/{label or type(source).__name__}"
    if hasattr(source, "embed_documents"):
        return _Adapted(source.embed_documents, label)
    if hasattr(source, "get_text_embedding_batch"):
        return _Adapted(source.get_text_embedding_batch, label)
    raise InputError(
        f"{type(source).__name__} is no encoder. Give an object with name, dimension and embed(), "
        "a LangChain Embeddings, a LlamaIndex BaseEmbedding, or a sentence-transformers name."
    )
