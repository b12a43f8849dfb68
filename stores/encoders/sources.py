"""Makes encoders from the packaged model, models' names, LangChain's or LlamaIndex's embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.extensions import extension, extensions
from casewright.stores.encoders.cache import CachedEncoder
from casewright.stores.encoders.cross_encoder import CrossEncoder
from casewright.stores.encoders.encoder import Encoder, checked_vectors
from casewright.stores.encoders.minilm import MiniLMEncoder
from casewright.stores.encoders.sentence_transformers import SentenceTransformersEncoder
from casewright.stores.paths import cache_folder

#: Fields of LangChain's and LlamaIndex's embedding objects that hold the model's name.
MODEL_NAME_FIELDS = ("model_name", "model", "model_id")


@cache
def packaged_cross_encoder() -> CrossEncoder:
    """Return the packaged cross-encoder; the process has one instance."""
    return CrossEncoder()


@cache
def default_encoder() -> CachedEncoder:
    """Return the offline encoder with its caches; the process has one instance."""
    return CachedEncoder(MiniLMEncoder(), cache_folder() / "embeddings", packaged_cross_encoder())


def named_encoder(name: str | None) -> CachedEncoder:
    """Return an encoder with its caches; the packaged encoder for ``None``.

    ``name`` is the name of an entry point of the group ``casewright.encoders`` (see
    ``casewright.extensions``) or of a sentence-transformers model. Raise ``InputError`` for an
    unknown name, and ``DependencyError`` if sentence-transformers is needed and not installed.
    """
    if name is None:
        return default_encoder()
    encoder = extension("encoder", name)() if name in extensions("encoder") else as_encoder(name)
    cross_encoder = packaged_cross_encoder() if isinstance(encoder, MiniLMEncoder) else None
    return CachedEncoder(encoder, cache_folder() / "embeddings", cross_encoder)


def preload(encoder: CachedEncoder) -> None:
    """Load the packaged model in the background; do nothing for other encoders."""
    if isinstance(encoder.encoder, MiniLMEncoder):
        encoder.encoder.preload()


def as_encoder(source: Any, *, name: str | None = None) -> Encoder:
    """Return an encoder for any supported source.

    Args:
        source: An encoder; a sentence-transformers model's name; a LangChain ``Embeddings``; a
            LlamaIndex ``BaseEmbedding``.
        name: The model's name, for a source without a name.

    Raises:
        InputError: ``source`` is none of these.
    """
    if isinstance(source, str):
        if not source.strip():
            raise InputError("An encoder's name is empty. Give a sentence-transformers name.")
        return SentenceTransformersEncoder(source)
    if not isinstance(source, type):
        if isinstance(source, Encoder):
            return source
        if hasattr(source, "embed_documents"):
            return from_langchain(source, name=name)
        if hasattr(source, "get_text_embedding_batch"):
            return from_llamaindex(source, name=name)
    raise InputError(
        f"{_type_of(source)} is not an encoder. Give an object with name, dimension and embed(), "
        "a LangChain Embeddings, a LlamaIndex BaseEmbedding, or a sentence-transformers name."
    )


def from_langchain(embeddings: Any, *, name: str | None = None) -> AdaptedEncoder:
    """Return an encoder that calls a LangChain ``Embeddings``; for queries, its ``embed_query``.

    This call embeds one text, to find the dimension.

    Args:
        embeddings: A LangChain ``Embeddings``.
        name: The encoder's name, for a collection's fingerprint; by default ``library/model``.

    Raises:
        InputError: The object is not an ``Embeddings``, or does not return vectors.
    """
    methods = ("embed_documents", "embed_query")
    return AdaptedEncoder(embeddings, "a LangChain Embeddings", methods, name)


def from_llamaindex(embedding: Any, *, name: str | None = None) -> AdaptedEncoder:
    """Return an encoder for a LlamaIndex ``BaseEmbedding``, as ``from_langchain`` does."""
    methods = ("get_text_embedding_batch", "get_query_embedding")
    return AdaptedEncoder(embedding, "a LlamaIndex BaseEmbedding", methods, name)


class AdaptedEncoder:
    """An encoder that calls an embedding object of another library.

    ``kind`` is the type that ``source`` must have, for messages. ``methods`` are the names of the
    methods that embed n texts and one query. See ``from_langchain`` for ``name``.
    """

    def __init__(self, source: Any, kind: str, methods: tuple[str, str], name: str | None) -> None:
        embed_texts, embed_query = (getattr(source, method, None) for method in methods)
        if isinstance(source, type) or not (callable(embed_texts) and callable(embed_query)):
            names = " and ".join(methods)
            raise InputError(f"{_type_of(source)} is not {kind}: that is an object with {names}.")
        self._embed_texts, self._embed_query = embed_texts, embed_query
        self.name = name or _default_name(source)
        self.dimension = checked_vectors(embed_texts(["dimension"]), 1, None, self.name).shape[1]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as an array (n, dimension); raise ``InputError`` for a bad answer."""
        return self._answer_vectors(self._embed_texts(list(texts)) if texts else [], texts)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n queries as an array (n, dimension), one call for each query; see ``embed``."""
        return self._answer_vectors([self._embed_query(text) for text in texts], texts)

    def _answer_vectors(self, answer: Any, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return checked_vectors(answer, len(texts), self.dimension, self.name)


def _default_name(source: Any) -> str:
    # Only strings are names: the text of another object may contain a memory address.
    names = [n for field in MODEL_NAME_FIELDS if isinstance(n := getattr(source, field, None), str)]
    model = next((name for name in names if name not in ("", "unknown")), type(source).__name__)
    return f"{type(source).__module__.split('.')[0]}/{model}"


def _type_of(source: Any) -> str:
    return f"The class {source.__name__}" if isinstance(source, type) else type(source).__name__
