"""Embeddings of LangChain and LlamaIndex as encoders, with their own methods for queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from llama_index.core.embeddings import BaseEmbedding, MockEmbedding

from casewright.errors import InputError
from casewright.stores import CachedEncoder, CaseSchema, CaseStore, Encoder, as_encoder, text_facet
from casewright.stores.encoders.sources import from_langchain, from_llamaindex
from tests.stores.helpers import note
from tests.support.encoders import HashingEncoder

TEXTS = ["a red apple", "a green pear"]
HASHING = HashingEncoder(16)


def vector(text: str, query: bool) -> list[float]:
    """Return the vector of a text, or its negative for a query, so that mix-ups are visible."""
    embedding = HASHING.embed([text])[0]
    return [float(number) for number in (-embedding if query else embedding)]


class Asymmetric(Embeddings):
    model = "two-ways-v1"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector(text, query=False) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return vector(text, query=True)


class AsymmetricIndex(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return vector(text, query=False)

    def _get_query_embedding(self, query: str) -> list[float]:
        return vector(query, query=True)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vector(query, query=True)


ASYMMETRIC: list[Callable[[], Any]] = [
    lambda: from_langchain(Asymmetric()),
    lambda: from_llamaindex(AsymmetricIndex(model_name="two-ways-v1")),
    lambda: CachedEncoder(from_langchain(Asymmetric())),
]


@pytest.mark.parametrize("make_encoder", ASYMMETRIC, ids=["langchain", "llamaindex", "cached"])
def test_adapted_encoder_embeds_queries_by_query_method_and_texts_by_text_method(
    make_encoder: Callable[[], Any],
) -> None:
    encoder = make_encoder()
    np.testing.assert_array_equal(encoder.embed(TEXTS), HASHING.embed(TEXTS))
    np.testing.assert_array_equal(encoder.embed_queries(TEXTS), -HASHING.embed(TEXTS))
    assert encoder.embed_queries(TEXTS).dtype == np.float32
    assert encoder.embed([]).shape == encoder.embed_queries([]).shape == (0, 16)
    assert isinstance(encoder, Encoder)


@pytest.mark.parametrize("make_encoder", ASYMMETRIC, ids=["langchain", "llamaindex", "cached"])
def test_search_embeds_queries_as_queries_unless_the_facet_sets_inter_false(
    make_encoder: Callable[[], Any],
) -> None:
    encoder = make_encoder()
    facets = (text_facet("support", encoder), text_facet("question", encoder, inter=False))
    with CaseStore(CaseSchema("both", facets)) as store:
        store.add([note("a red apple", 1, id="")])
        (hit,) = store.search({"question": "a red apple"})
        assert hit.facet_scores == pytest.approx({"support": 0, "question": 1}, abs=1e-6)
    with CaseStore(CaseSchema("inter", (text_facet("question", encoder),))) as store:
        store.add([note("a red apple", 1)])
        assert store.search("a red apple")[0].score == pytest.approx(-1, abs=1e-6)


def test_as_encoder_accepts_langchain_and_llamaindex_embeddings() -> None:
    for source in (Asymmetric(), AsymmetricIndex()):
        encoder: Any = as_encoder(source)
        np.testing.assert_array_equal(encoder.embed_queries(TEXTS), -HASHING.embed(TEXTS))


def test_encoder_name_is_the_given_name_or_library_and_model() -> None:
    assert from_langchain(Asymmetric(), name="mine/v2").name == "mine/v2"
    assert from_llamaindex(AsymmetricIndex(), name="mine/v2").name == "mine/v2"
    assert from_langchain(Asymmetric()).name == "tests/two-ways-v1"
    assert from_llamaindex(AsymmetricIndex(model_name="two-ways-v1")).name == "tests/two-ways-v1"
    assert from_llamaindex(AsymmetricIndex()).name == "tests/AsymmetricIndex"
    fake = from_langchain(DeterministicFakeEmbedding(size=4))
    assert fake.name == "langchain_core/DeterministicFakeEmbedding"


def test_encoder_name_has_no_object_address_if_model_is_an_object() -> None:
    class Holder(Asymmetric):
        model = object()  # type: ignore[assignment]

    assert from_langchain(Holder()).name == "tests/Holder"


@pytest.mark.parametrize("source", [object(), None, "a-name", Asymmetric, MockEmbedding, HASHING])
def test_from_langchain_and_from_llamaindex_refuse_other_objects(source: Any) -> None:
    with pytest.raises(InputError, match=r"LangChain Embeddings.*embed_documents and embed_query"):
        from_langchain(source)
    with pytest.raises(InputError, match=r"LlamaIndex BaseEmbedding.*get_query_embedding"):
        from_llamaindex(source)


@pytest.mark.parametrize("source", [Asymmetric, MockEmbedding, HashingEncoder])
def test_as_encoder_refuses_a_class(source: Any) -> None:
    with pytest.raises(InputError, match=f"The class {source.__name__} is not an encoder"):
        as_encoder(source)


class Wrong(Embeddings):
    """Embeddings that return correct vectors until ``answer`` is set, and then ``answer``."""

    def __init__(self) -> None:
        self.answer: Any = None

    def embed_documents(self, texts: list[str]) -> Any:
        return [[1.0, 2.0, 3.0]] * len(texts) if self.answer is None else self.answer

    def embed_query(self, text: str) -> Any:
        return [1.0, 2.0, 3.0] if self.answer is None else self.answer[0]


ANSWERS = [
    ([[1.0, 2.0], [3.0, 4.0]], r"shape \(2, 2\); expected \(2, 3\)"),
    ([[1.0, 2.0, 3.0, 4.0]] * 2, r"shape \(2, 4\); expected \(2, 3\)"),
    ([[1.0, float("nan"), 3.0]] * 2, "text 1 of 2 with NaN or infinity"),
    ([[1.0, 1e300, 3.0]] * 2, "NaN or infinity"),
    ([[1.0, 2.0, 3.0], [1.0]], "not with an array of numbers"),
    ([["a", "b", "c"]] * 2, "not with an array of numbers"),
    ([None, None], r"shape \(2,\)"),
]


@pytest.mark.parametrize(("answer", "message"), ANSWERS, ids=str)
def test_error_for_a_wrong_embedding_names_the_encoder(answer: Any, message: str) -> None:
    source = Wrong()
    encoder: Any = from_langchain(source)
    source.answer = answer
    with pytest.raises(InputError, match=rf"'tests/Wrong'.*{message}"):
        encoder.embed(TEXTS)
    source.answer = [answer[-1]] * 2
    with pytest.raises(InputError, match="'tests/Wrong'"):
        encoder.embed_queries(TEXTS)


@pytest.mark.parametrize("answer", [[[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]] * 3, []], ids=len)
def test_fewer_or_more_vectors_than_texts_are_refused(answer: Any) -> None:
    source = Wrong()
    encoder = from_langchain(source)
    source.answer = answer
    with pytest.raises(InputError, match=r"expected \(2, 3\), one row each"):
        encoder.embed(TEXTS)


@pytest.mark.parametrize("answer", [[], [[]], [1.0], [[float("inf")]], [[1.0], [1.0]]], ids=str)
def test_from_langchain_refuses_embeddings_whose_first_answer_is_wrong(answer: Any) -> None:
    source = Wrong()
    source.answer = answer
    with pytest.raises(InputError, match="'tests/Wrong'"):
        from_langchain(source)
