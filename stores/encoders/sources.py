"""Where encoders come from: the packaged model, a model's name, LangChain, LlamaIndex."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.extensions import extension, extensions
from casewright.stores.encoders.cache import CachedEncoder
from casewright.stores.encoders.checked import checked_vectors
from casewright.stores.encoders.encoder import Encoder
from casewright.stores.encoders.minilm import MiniLMEncoder
from casewright.stores.encoders.sentence_transformers import SentenceTransformersEncoder
from casewright.stores.paths import cache_folder

#: Where embedding objects of other libraries keep their model's name.
MODEL_NAMES = ("model_name", "model", "model_id")


@cache
def default_encoder() -> CachedEncoder:
    """Return the offline encoder with its caches; one instance a process."""
    return CachedEncoder(MiniLMEncoder(), cache_folder() / "embeddings")


def named_encoder(name: str | None) -> CachedEncoder:
    """Return an encoder with its caches; without a name the packaged one.

    Args:
        name: One of the group ``casewright.encoders``, see ``casewright.extensions``; or a
            sentence-transformers model.

    Raises:
        InputError: There is no such model.
        DependencyError: sentence-transformers is not installed.
    """
    if name is None:
        return default_encoder()
    if name in extensions("encoder"):
        return CachedEncoder(extension("encoder", name)(), cache_folder() / "embeddings")
    return CachedEncoder(as_encoder(name), cache_folder() / "embeddings")


def preload(encoder: CachedEncoder) -> None:
    """Load the packaged model in the background, beside other work; of other encoders nothing."""
    if isinstance(encoder.encoder, MiniLMEncoder):
        encoder.encoder.preload()


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
        f"{_kind(source)} is no encoder. Give an object with name, dimension and embed(), "
        "a LangChain Embeddings, a LlamaIndex BaseEmbedding, or a sentence-transformers name."
    )


def from_langchain(embeddings: Any, *, name: str | None = None) -> AdaptedEncoder:
    """Turn a LangChain ``Embeddings`` into an encoder; queries are embedded by ``embed_query``.

    It is asked for one embedding at once, to know its dimension.

    Args:
        embeddings: A LangChain ``Embeddings``.
        name: Identifies model and version, part of a collection's fingerprint; ``None`` makes one
            of the library and of what the object says of its model.

    Raises:
        InputError: It is no ``Embeddings``, or answers with what are no vectors.
    """
    _require(embeddings, "a LangChain Embeddings", "embed_documents", "embed_query")
    texts, query = embeddings.embed_documents, embeddings.embed_query
    return AdaptedEncoder(texts, query, name or _label(embeddings))


def from_llamaindex(embedding: Any, *, name: str | None = None) -> AdaptedEncoder:
    """Turn a LlamaIndex ``BaseEmbedding`` into an encoder.

    Queries are embedded by ``get_query_embedding``. It is asked for one embedding at once, to know
    its dimension.

    Args:
        embedding: A LlamaIndex ``BaseEmbedding``.
        name: Identifies model and version, part of a collection's fingerprint; ``None`` makes one
            of the library and of what the object says of its model.

    Raises:
        InputError: It is no ``BaseEmbedding``, or answers with what are no vectors.
    """
    methods = ("get_text_embedding_batch", "get_query_embedding")
    _require(embedding, "a LlamaIndex BaseEmbedding", *methods)
    texts, query = (getattr(embedding, method) for method in methods)
    return AdaptedEncoder(texts, query, name or _label(embedding))


class AdaptedEncoder:
    """An embedding object of another library as an encoder.

    Args:
        texts: Embeds n texts.
        query: Embeds one query.
        name: Identifies model and version.

    Raises:
        InputError: ``texts`` answers with what is no vector.
    """

    def __init__(
        self, texts: Callable[[list[str]], Any], query: Callable[[str], Any], name: str
    ) -> None:
        self._texts = texts
        self._query = query
        self.name = name
        self.dimension = checked_vectors(texts(["dimension"]), 1, None, name).shape[1]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n texts as an array (n, dimension).

        Raises:
            InputError: The answer has other rows than one finite vector a text.
        """
        return self._checked(self._texts(list(texts)) if texts else [], texts)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed n queries as an array (n, dimension), by one call a query.

        Raises:
            InputError: An answer is no finite vector of that dimension.
        """
        return self._checked([self._query(text) for text in texts], texts)

    def _checked(self, answer: Any, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return checked_vectors(answer, len(texts), self.dimension, self.name)


def _label(source: Any) -> str:
    """Return a name for what embeds: its library, and its model's name or else its type's."""
    names = (getattr(source, field, None) for field in MODEL_NAMES)
    # An object in such a field would be named by its address, anew in each process.
    model = next(
        (name for name in names if isinstance(name, str) and name not in ("", "unknown")), ""
    )
    return f"{type(source).__module__.split('.')[0]}/{model or type(source).__name__}"


def _require(source: Any, wanted: str, *methods: str) -> None:
    if isinstance(source, type) or not all(callable(getattr(source, m, None)) for m in methods):
        raise InputError(
            f"{_kind(source)} is not {wanted}: that is an object with {' and '.join(methods)}."
        )


def _kind(source: Any) -> str:
    return f"The class {source.__name__}" if isinstance(source, type) else type(source).__name__
