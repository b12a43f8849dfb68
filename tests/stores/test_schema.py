from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import QdrantClient, models

from casewright.errors import InputError, SchemaMismatchError
from casewright.stores import Case, CaseSchema, CaseStore, text_facet
from tests.stores.helpers import note, note_schema, vector_facet
from tests.support.encoders import HashingEncoder
from tests.support.qdrant_server import QdrantServer
from tests.support.sparse import contents

ENCODER = HashingEncoder()


def schema(*facets: Any, name: str = "notes", **options: Any) -> CaseSchema:
    return CaseSchema(name, facets or (text_facet("question", ENCODER),), **options)


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (schema(text_facet("question", HashingEncoder(name="another-model"))), "another-model"),
        (schema(text_facet("question", HashingEncoder(16, name=ENCODER.name))), "16"),
        (schema(text_facet("question", ENCODER, ["question", "support"])), "support"),
        (schema(text_facet("asked", ENCODER, ["question"])), "asked"),
        (schema(text_facet("question", ENCODER), text_facet("support", ENCODER)), "support"),
    ],
    ids=["encoder", "dimension", "components", "facet name", "one facet more"],
)
def test_collection_of_another_schema_is_refused_with_the_difference(
    folder: Path, other: CaseSchema, difference: str
) -> None:
    with CaseStore(schema(), folder) as store:
        store.add([note("q")])
    before = contents(folder)
    with pytest.raises(SchemaMismatchError, match="notes") as exc_info:
        CaseStore(other, folder)
    assert difference in str(exc_info.value)
    assert ENCODER.name in str(exc_info.value)
    assert contents(folder) == before
    with CaseStore(schema(), folder) as reopened:
        assert reopened.count() == 1


def test_mismatch_leaves_the_other_stores_of_the_folder_open(folder: Path) -> None:
    with CaseStore(schema(), folder) as store:
        store.add([note("q")])
        with pytest.raises(SchemaMismatchError):
            CaseStore(schema(text_facet("other", ENCODER)), folder)
        assert store.count() == 1


def test_weights_cue_and_texts_may_change_between_openings(folder: Path) -> None:
    with CaseStore(schema(), folder) as store:
        store.add([note("q")])
    facet = text_facet("question", ENCODER, weight=0.1, cue="find: ")
    with CaseStore(schema(facet, near=0.5, full=lambda case: ""), folder) as reopened:
        assert reopened.count() == 1


def test_collection_with_another_quality_range_is_refused(folder: Path) -> None:
    with CaseStore(schema(quality_range=(0.0, 1.0)), folder) as store:
        store.add([note("q", quality=0.5)])
    with pytest.raises(SchemaMismatchError, match=r"quality_range is \[0.0, 1.0\] there"):
        CaseStore(schema(quality_range=(-20.0, 0.0)), folder)


def test_server_collection_not_created_by_casewright_is_refused(server: QdrantServer) -> None:
    client = QdrantClient(url=server.url, check_compatibility=False)
    config = models.VectorParams(size=ENCODER.dimension + 1, distance=models.Distance.DOT)
    client.create_collection("notes", vectors_config=config)
    client.close()
    with pytest.raises(SchemaMismatchError, match="notes"):
        CaseStore(schema(), server.url)


def test_schema_without_facets_or_with_equal_facet_names_is_refused() -> None:
    with pytest.raises(InputError, match="notes"):
        CaseSchema("notes", ())
    with pytest.raises(InputError, match="question"):
        schema(text_facet("question", ENCODER), text_facet("question", ENCODER))


@pytest.mark.parametrize(
    "quality_range",
    [(1.0, 0.0), (0.5, 0.5), (0.0, math.inf), (math.nan, 1.0), (0.0, math.nan), (-1e300, 1e300)],
    ids=str,
)
def test_invalid_quality_range_is_refused(quality_range: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="quality_range"):
        schema(quality_range=quality_range)


def test_facet_weights_are_scaled_to_sum_to_one() -> None:
    weighted = schema(vector_facet("a", 2, 3.0), vector_facet("b", 2), vector_facet("c", 1, 0.0))
    assert weighted.weights().tolist() == [0.75, 0.25, 0.0]
    assert weighted.weights({"b": 2, "c": 6}).tolist() == [0.0, 0.25, 0.75]


def test_schema_slices_give_the_position_of_each_facet_in_the_vector() -> None:
    plain = schema(vector_facet("a", 2), vector_facet("b", 3))
    assert (dict(plain.slices), plain.dimension) == ({"a": slice(0, 2), "b": slice(2, 5)}, 6)


def test_schema_formats_a_case_as_support_or_full_text() -> None:
    case = Case({"question": "où ?", "n": 3}, {"city": "Nîmes"}, result="right")
    notes = note_schema()
    assert notes.support(case) == '{"city": "Nîmes"}'
    assert notes.full(case) == 'question: où ?\nn: 3\nsolution: {"city": "Nîmes"}\nresult: right'
    assert notes.full(note("q", "s")) == "question: q\nsolution: s"
