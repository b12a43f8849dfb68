from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from llama_index.core.embeddings import MockEmbedding

from casewright.errors import InputError
from casewright.stores import CachedEncoder, CaseStore, Encoder, as_encoder
from tests.stores.helpers import note, note_schema
from tests.support.encoders import HashingEncoder

TEXTS = ["a red apple", "a green pear", "a red apple"]


def test_as_encoder_returns_an_encoder_unchanged() -> None:
    encoder = HashingEncoder()
    assert as_encoder(encoder) is encoder
    assert isinstance(encoder, Encoder)
    assert isinstance(CachedEncoder(encoder), Encoder)


def test_langchain_embeddings_become_an_encoder() -> None:
    source = DeterministicFakeEmbedding(size=24)
    encoder = as_encoder(source)
    vectors = encoder.embed(TEXTS)
    assert isinstance(encoder, Encoder)
    assert encoder.dimension == 24
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, source.embed_documents(TEXTS), rtol=1e-6)
    assert "DeterministicFakeEmbedding" in encoder.name


def test_llamaindex_embedding_becomes_an_encoder() -> None:
    encoder = as_encoder(MockEmbedding(embed_dim=12, model_name="mock-12"))
    assert isinstance(encoder, Encoder)
    assert (encoder.dimension, encoder.embed(TEXTS).shape) == (12, (3, 12))
    assert encoder.embed(TEXTS).dtype == np.float32
    assert "mock-12" in encoder.name


@pytest.mark.parametrize("source", [DeterministicFakeEmbedding(size=8), MockEmbedding(embed_dim=8)])
def test_adapted_encoder_has_the_given_name_and_embeds_an_empty_list(source: Any) -> None:
    encoder = as_encoder(source, name="mine-v2")
    assert "mine-v2" in encoder.name
    assert CachedEncoder(encoder).embed([]).shape == (0, 8)


def test_store_works_on_an_adapted_encoder(tmp_path: Path) -> None:
    schema = note_schema(encoder=as_encoder(DeterministicFakeEmbedding(size=24)))
    with CaseStore(schema, tmp_path) as store:
        store.add([note("a red apple", 1), note("a green pear", 2)])
        hits = store.search({"question": "a green pear"})
    assert [hit.case.solution for hit in hits] == [2, 1]
    assert hits[0].facet_scores["question"] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    "source", [object(), 3, None, ["a"]], ids=["object", "number", "none", "list"]
)
def test_as_encoder_refuses_other_objects_and_names_their_type(source: Any) -> None:
    with pytest.raises(InputError, match=type(source).__name__):
        as_encoder(source)


def test_as_encoder_refuses_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="could not be loaded"):
        as_encoder(str(tmp_path / "nothing"))
