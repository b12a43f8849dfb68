from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.stores import Case, CaseSchema, CaseStore, Facet, text_facet
from casewright.stores.facet import Components
from tests.stores.helpers import vector_facet
from tests.support.encoders import HashingEncoder

#: A position before or after a move, as a vector that is not zero.
POSITION = st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any)


def mean_of(problems: Sequence[Components]) -> Any:
    """Return the means of two components' latents, as L_j of MCBR-RAG (footnote 6)."""
    rows = []
    for problem in problems:
        present = [problem[name] for name in ("before", "after") if name in problem]
        rows.append(np.mean(np.asarray(present, dtype=np.float64), axis=0))
    return rows


def move_facet(*optional: str) -> Facet:
    return Facet(
        "move", ("before", "after"), 3, mean_of, mean_of, str, "mean", 2.0, optional=optional
    )


def schema(*optional: str) -> CaseSchema:
    return CaseSchema("moves", (move_facet(*optional), text_facet("note", HashingEncoder())))


def cosine(first: Any, second: Any) -> float:
    lengths = np.linalg.norm(first) * np.linalg.norm(second)
    return float(np.dot(first, second) / lengths) if lengths else 0.0


@settings(max_examples=30, deadline=None)
@given(POSITION, st.none() | POSITION, POSITION, st.none() | POSITION)
def test_facet_over_two_components_compares_the_mean_of_present_components(
    before: Any, after: Any, query_before: Any, query_after: Any
) -> None:
    problem = {"before": before} | ({"after": after} if after else {})
    query = {"before": query_before} | ({"after": query_after} if query_after else {})
    with CaseStore(schema("after")) as store:
        store.add([Case(problem, 1)])
        (hit,) = store.search(query)
    means = [np.mean(list(components.values()), axis=0) for components in (problem, query)]
    assert hit.facet_scores["move"] == pytest.approx(cosine(*means), abs=1e-6)
    assert hit.score == pytest.approx(2 / 3 * cosine(*means), abs=1e-6)


def test_query_without_the_optional_component_is_compared_by_the_other(location: str) -> None:
    with CaseStore(schema("after"), location) as store:
        store.add(
            [
                Case({"before": [1, 0, 0], "after": [1, 0, 0]}, "stays"),
                Case({"before": [1, 0, 0], "after": [0, 1, 0]}, "turns"),
                Case({"before": [1, 0, 0]}, "ends"),
                Case({"after": [1, 0, 0]}, "begins"),
            ]
        )
        scores = {hit.case.solution: hit.score for hit in store.search({"before": [1, 0, 0]})}
        expected = {"stays": 2 / 3, "turns": 2 / 3 / 2**0.5, "ends": 2 / 3, "begins": 0}
        assert scores == pytest.approx(expected, abs=1e-6)
        # This query has neither the required component of the facet nor that of the other.
        with pytest.raises(InputError, match="lacks a component of every facet"):
            store.search({"after": [1, 0, 0]})


def test_problem_that_lacks_a_required_component_scores_zero_in_the_facet() -> None:
    with CaseStore(schema()) as store:
        store.add(
            [Case({"before": [1, 0, 0]}, 1), Case({"before": [1, 0, 0], "after": [1, 0, 0]}, 2)]
        )
        hits = store.search({"before": [1, 0, 0], "after": [1, 0, 0]})
        assert [(hit.case.solution, hit.facet_scores["move"]) for hit in hits] == [
            (2, pytest.approx(1)),
            (1, 0),
        ]


def test_facet_with_optional_components_only_is_refused() -> None:
    with pytest.raises(InputError, match=r"of which .* are optional"):
        move_facet("before", "after")


def test_optional_component_that_the_facet_does_not_read_is_refused() -> None:
    with pytest.raises(InputError, match="'other'"):
        move_facet("after", "other")


def test_facet_without_components_is_refused() -> None:
    with pytest.raises(InputError, match="'a'"):
        replace(vector_facet("a", 3), components=())


@pytest.mark.parametrize("dimension", [0, -3])
def test_facet_with_a_dimension_below_one_is_refused(dimension: int) -> None:
    with pytest.raises(InputError, match=f"dimension {dimension}"):
        vector_facet("a", dimension)


def test_two_facets_may_read_one_component_differently(location: str) -> None:
    first = replace(
        vector_facet("first", 2), components=("v",), embed_case=lambda ps: [p["v"][:2] for p in ps]
    )
    last = replace(
        vector_facet("last", 2), components=("v",), embed_case=lambda ps: [p["v"][2:] for p in ps]
    )
    facets = tuple(replace(facet, embed_query=facet.embed_case) for facet in (first, last))
    with CaseStore(CaseSchema("plain", facets), location) as store:
        store.add([Case({"v": [1, 0, 0, 1]}, 1), Case({"v": [0, 1, 1, 0]}, 2)])
        for weights, order in (({"first": 1.0}, [1, 2]), ({"last": 1.0}, [2, 1])):
            hits = store.search({"v": [1, 0, 1, 0]}, weights=weights)
            assert [hit.case.solution for hit in hits] == order
            assert [hit.score for hit in hits] == pytest.approx([1, 0], abs=1e-6)


@pytest.mark.parametrize("weight", [1e308, 1e-308, 5e-324])
def test_search_weights_of_any_size_count_by_their_shares(weight: float) -> None:
    with CaseStore(schema("after")) as store:
        store.add([Case({"before": [1, 0, 0]}, 1), Case({"note": "red"}, 2)])
        hits = store.search(
            {"before": [1, 0, 0], "note": "red"}, weights={"move": weight, "note": weight}
        )
        assert [hit.score for hit in hits] == pytest.approx([0.5, 0.5], abs=1e-6)


@pytest.mark.parametrize("weight", ["x", None, [1], 10**400, 1j, "nan"], ids=repr)
def test_search_weight_that_is_not_a_finite_number_is_refused(weight: Any) -> None:
    with CaseStore(schema()) as store:
        for method in (store.search, store.select):
            with pytest.raises(InputError, match="weights"):
                method("red", weights={"move": 1.0, "note": weight})


@pytest.mark.parametrize("name", ["", "ü.\"'", "$media_type", "solution", "\n", "x" * 300])
def test_component_may_have_any_name(folder: Path, name: str) -> None:
    facet = text_facet("any", HashingEncoder(), [name])
    with CaseStore(CaseSchema("plain", (facet,)), folder) as store:
        problem = {name: "red apple", "more": {"path": [1, None]}}
        store.add([Case(problem, 1), Case({}, 2), Case({"more": 1}, 3)])
        hits = store.search({name: "red"})
        assert hits[0].case.problem == problem
        assert [hit.score for hit in hits[1:]] == [0, 0]
        assert "red apple" in store.schema.full(hits[0].case)


def test_text_of_a_million_characters_is_returned_unchanged(location: str) -> None:
    text = "große Wörter " * 80_000
    with CaseStore(CaseSchema("plain", (text_facet("t", HashingEncoder()),)), location) as store:
        store.add([Case({"t": text}, text)])
        assert store.search({"t": "wörter"})[0].case.solution == text
        assert store.get(store.all()[0].id)[0].problem == {"t": text}


def test_add_and_retain_refuse_a_value_that_is_not_a_case(store: CaseStore) -> None:
    unusable: list[Any] = ["text", 5, None, [("a", "b")]]
    for value in unusable:
        for method in (lambda case: store.add([case]), store.retain):
            for case in (value, Case(value, 1), Case({"question": "q"}, metadata=value)):
                with pytest.raises(InputError, match="mappings"):
                    method(case)
    assert store.count() == 0


def test_search_and_select_refuse_a_query_that_is_not_a_problem(store: CaseStore) -> None:
    unusable: list[Any] = [5, None, ["red"], b"red", Case({})]
    for query in unusable:
        for method in (store.search, store.select):
            with pytest.raises(InputError, match="search"):
                method(query)


def test_search_refuses_a_k_that_is_not_a_positive_integer(store: CaseStore) -> None:
    store.add([Case({"question": "red"})])
    unusable: list[Any] = [0, -1, 2.5, float("nan"), None, "3"]
    for k in unusable:
        with pytest.raises(InputError, match="k="):
            store.search("red", k)
    assert len(store.search("red", np.int64(1))) == 1
