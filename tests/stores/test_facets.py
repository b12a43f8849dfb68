from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.stores import Binary, Case, CaseSchema, CaseStore, Facet, text_facet
from casewright.stores.facet import Components
from tests.stores.helpers import note_schema, vector_facet
from tests.support.encoders import HashingEncoder


def facet_that_embeds_as(answer: Any) -> Facet:
    """Return a facet that embeds n stored cases as ``answer(n)``."""

    def embed(problems: Sequence[Components]) -> Any:
        return answer(len(problems))

    return replace(vector_facet("a", 3), embed_case=embed)


@pytest.mark.parametrize(
    "answer",
    [
        lambda n: np.ones(3),
        lambda n: np.ones((n, 3, 1)),
        lambda n: [[1.0, 2.0, 3.0]] * (n - 1) + [[1.0]],
    ],
    ids=["flat", "deep", "ragged"],
)
def test_embedding_of_wrong_shape_is_refused_with_the_facet_name(answer: Any) -> None:
    with CaseStore(CaseSchema("plain", (facet_that_embeds_as(answer),))) as store:
        with pytest.raises(InputError, match="'a'"):
            store.add([Case({"a": [1, 2, 3]}, i) for i in range(2)])
        assert store.count() == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_embedding_that_is_not_finite_is_refused_with_facet_and_case(value: float) -> None:
    facet = vector_facet("a", 3)
    with CaseStore(CaseSchema("plain", (facet,))) as store:
        store.add([Case({"a": [1, 2, 3]})])
        broken = replace(facet, embed_case=lambda problems: np.full((len(problems), 3), value))
        with CaseStore(CaseSchema("other", (broken,))) as other:
            with pytest.raises(InputError, match=r"'a'.*\[7, 8, 9\].*finite"):
                other.add([Case({"a": [7, 8, 9]})])
            assert other.count() == 0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=3, max_size=3).filter(any), st.integers(-30, 30))
def test_embeddings_of_any_length_are_scaled_to_unit_length(
    direction: list[int], exponent: int
) -> None:
    vectors = vector_facet("a", 3).vectors([{"a": [x * 10.0**exponent for x in direction]}])
    assert np.linalg.norm(vectors[0].astype(np.float64)) == pytest.approx(1.0, abs=1e-5)


def test_zero_embedding_scores_zero() -> None:
    with CaseStore(CaseSchema("plain", (vector_facet("a", 3),))) as store:
        store.add([Case({"a": [0, 0, 0]})])
        (hit,) = store.search({"a": [1, 2, 3]})
    assert (hit.score, hit.relevance, hit.facet_scores) == (0, 0, {"a": 0})


@pytest.mark.parametrize("problem", [{}, {"a": "x"}, {"a": "x", "b": ""}, {"a": "x", "b": None}])
def test_facet_does_not_embed_a_problem_that_lacks_a_component(problem: Any) -> None:
    encoder = HashingEncoder()
    facet = text_facet("both", encoder, ["a", "b"])
    assert not facet.reads(problem)
    assert not facet.vectors([problem]).any()
    assert encoder.calls == []


def test_facet_embeds_only_cases_with_its_components_and_keeps_row_order() -> None:
    encoder = HashingEncoder()
    vectors = text_facet("a", encoder).vectors([{}, {"a": "one"}, {"a": ""}, {"a": "two"}])
    assert encoder.calls == [["one", "two"]]
    assert [bool(row.any()) for row in vectors] == [False, True, False, True]
    first, second = HashingEncoder().embed(["one", "two"])
    assert vectors[1] @ first == pytest.approx(1)
    assert vectors[3] @ second == pytest.approx(1)


def test_component_may_be_an_array() -> None:
    vectors = vector_facet("a", 3).vectors([{"a": np.array([0.0, 3.0, 4.0])}])
    assert vectors[0].tolist() == pytest.approx([0.0, 0.6, 0.8])


def test_component_that_is_zero_or_false_counts_as_present() -> None:
    facet = text_facet("n", HashingEncoder())
    assert facet.reads({"n": 0})
    assert facet.reads({"n": False})


def test_cue_is_prepended_to_queries_and_not_to_cases() -> None:
    encoder = HashingEncoder()
    facet = text_facet("question", encoder, cue="find the case for: ")
    with CaseStore(CaseSchema("legal", (facet,))) as store:
        store.add([Case({"question": "may he"})])
        store.search("may she")
    assert encoder.calls == [["may he"], ["find the case for: may she"]]


def test_text_facet_joins_its_components_and_writes_other_values_as_json() -> None:
    encoder = HashingEncoder()
    facet = text_facet("all", encoder, ["a", "n", "picture"])
    problem = {"a": "é", "n": {"x": ["ü", 1]}, "picture": Binary("image/png", b"x")}
    facet.vectors([problem])
    assert encoder.calls == [['é\n{"x": ["ü", 1]}\n[image/png]']]
    assert facet.describe(problem) == encoder.calls[0][0]


def test_text_facet_embeds_the_text_of_a_given_describe_function() -> None:
    encoder = HashingEncoder()
    facet = text_facet("board", encoder, describe=lambda problem: f"{len(problem['board'])} men")
    facet.vectors([{"board": [1, 2, 3]}])
    assert encoder.calls == [["3 men"]]


def test_query_text_is_used_for_every_component() -> None:
    assert note_schema().query("why") == {"question": "why", "support": "why"}


def test_search_encodes_only_the_components_of_the_query() -> None:
    encoder = HashingEncoder()
    with CaseStore(note_schema(encoder=encoder)) as store:
        store.add([Case({"question": "one", "support": "two"})])
        encoder.calls.clear()
        store.search({"support": "three"})
    assert encoder.calls == [["three"]]
