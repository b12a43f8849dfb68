from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.stores import Case, CaseSchema, CaseStore, Selection
from tests.stores.helpers import note_schema, number_id, vector_facet
from tests.stores.naive import picks_of_all
from tests.support.examples import at_most

FACETS = (vector_facet("a", 3), vector_facet("b", 2, 3.0))
VECTORS = {
    name: st.none() | st.lists(st.integers(-2, 2), min_size=size, max_size=size)
    for name, size in (("a", 3), ("b", 2))
}
CASES = st.lists(
    st.tuples(st.fixed_dictionaries(VECTORS), st.none() | st.floats(0, 1)), min_size=1, max_size=25
)
WEIGHTS = st.sampled_from([None, {"a": 1.0}, {"b": 2.0}, {"a": 0.9, "b": 0.1}, {"a": 1, "b": 1}])
SHARES = st.sampled_from([0.0, 1.0, 0.5, 0.75, 0.95]) | st.floats(0, 1)
# A bias above 1 gives quality a negative weight.
BIASES = SHARES | st.floats(1, 2)
RANGES = st.sampled_from([(0.0, 1.0), (-20.0, 0.0), (0.0, 1000.0)])
QUERY = {"a": [1, 2, 0], "b": [1, -1]}


def add_cases(store: CaseStore, cases: Sequence[Any], start: int = 0, **metadata: Any) -> list[str]:
    low, high = store.schema.quality_range
    return store.add(
        Case(
            {name: part for name, part in problem.items() if part is not None},
            quality=None if quality is None else low + quality * (high - low),
            id=number_id(start + i),
            metadata=metadata,
        )
        for i, (problem, quality) in enumerate(cases)
    )


def ids_of(selection: Selection) -> list[str]:
    return [hit.case.id for hit in selection.hits]


def picks_of_algorithm_1(
    store: CaseStore, k: int, share: float, query: Any = QUERY, **options: Any
) -> list[str]:
    hits = store.search(query, 10_000, **options)
    return picks_of_all(hits, store.schema, k, share, options.get("weights"))


@settings(max_examples=at_most(35), deadline=None)
@given(CASES, st.integers(1, 5), st.integers(0, 12), WEIGHTS, SHARES, BIASES, RANGES)
def test_selection_without_limit_is_certified_and_equals_algorithm_1_over_all_cases(
    cases: Any, k: int, candidates: int, weights: Any, share: float, bias: float, quality_range: Any
) -> None:
    with CaseStore(CaseSchema("plain", FACETS, quality_range)) as store:
        add_cases(store, cases)
        options: Any = {"weights": weights, "lambda_b": bias}
        selection = store.select(QUERY, k, lambda_d=share, candidates=candidates, **options)
        assert selection.certified
        assert ids_of(selection) == picks_of_algorithm_1(store, k, share, **options)
        assert selection.candidates <= len(cases)


@settings(max_examples=at_most(30), deadline=None)
@given(CASES, st.integers(1, 5), st.integers(0, 12), st.integers(0, 14), WEIGHTS, SHARES)
def test_certified_selection_with_limited_candidates_equals_algorithm_1(
    cases: Any, k: int, candidates: int, most: int, weights: Any, share: float
) -> None:
    with CaseStore(CaseSchema("plain", FACETS)) as store:
        add_cases(store, cases)
        selection = store.select(
            QUERY, k, lambda_d=share, weights=weights, candidates=candidates, most=most
        )
        assert selection.candidates <= max(candidates, 2 * k, most)
        assert selection.certified or selection.candidates < len(cases)
        if selection.certified:
            assert ids_of(selection) == picks_of_algorithm_1(store, k, share, weights=weights)


@settings(max_examples=at_most(20), deadline=None)
@given(CASES, CASES, CASES, st.integers(1, 4), SHARES)
def test_certified_selection_uses_only_cases_of_tenant_and_condition(
    matching: Any, other_kind: Any, other_tenant: Any, k: int, share: float
) -> None:
    with CaseStore(CaseSchema("plain", FACETS)) as store, store.for_tenant("acme") as acme:
        add_cases(acme, matching, 0, kind="x")
        add_cases(acme, other_kind, 100, kind="y")
        with store.for_tenant("zeta") as zeta:
            add_cases(zeta, other_tenant, 200, kind="x")
        where = {"kind": {"not": "y"}}
        selection = acme.select(QUERY, k, lambda_d=share, where=where, candidates=1)
        assert selection.certified
        assert ids_of(selection) == picks_of_algorithm_1(acme, k, share, where=where)
        assert set(ids_of(selection)) <= {number_id(i) for i in range(len(matching))}
        assert selection.candidates <= len(matching)


def cases_around_centres(count: int, seed: int) -> list[Any]:
    """Return cases around seven centres, some three times, some without a facet or a quality."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(7, 5))
    cases: list[Any] = []
    for i in range(count):
        vector = centres[rng.integers(7)] + 0.3 * rng.normal(size=5)
        problem = {"a": vector[:3].round(3).tolist(), "b": vector[3:].round(3).tolist()}
        problem = {name: part for name, part in problem.items() if rng.random() > 0.1}
        cases += [(problem, None if i % 4 == 0 else i % 11 / 10)] * (3 if i % 5 == 0 else 1)
    return cases


OPTIONS: Any = [
    (1, None, 1.0),
    (4, {"a": 1.0}, 0.5),
    (8, {"a": 1, "b": 1}, 0.8),
    (6, None, 1.4),
    (30, None, 1.0),
]


def test_certified_picks_equal_those_of_all_cases_on_every_engine(location: str) -> None:
    with CaseStore(CaseSchema("plain", FACETS), location) as store:
        add_cases(store, cases_around_centres(150, 1))
        shares = [0.0, 0.75, 1.0]
        for share, (k, weights, bias) in itertools.product(shares, OPTIONS):
            rng = np.random.default_rng(k)
            query = {"a": rng.normal(size=3).tolist(), "b": rng.normal(size=2).tolist()}
            options: Any = {"weights": weights, "lambda_b": bias}
            selection = store.select(query, k, lambda_d=share, **options)
            assert selection.certified
            assert ids_of(selection) == picks_of_algorithm_1(store, k, share, query, **options)
            for pick in selection.picks:
                value = share * pick.hit.score - (1 - share) * pick.redundancy
                assert pick.value == pytest.approx(value, abs=1e-9)


def test_selection_fetches_more_candidates_until_it_is_certified(location: str) -> None:
    with CaseStore(CaseSchema("plain", FACETS), location) as store:
        # The nearest 40 cases are equal, so that every different case comes after them.
        add_cases(store, [({"a": [1, 2, 0]}, None)] * 40 + cases_around_centres(60, 2))
        selection = store.select(QUERY, 5, lambda_d=0.5, candidates=10)
        assert selection.certified
        assert 10 < selection.candidates <= store.count()
        assert selection.searches > 1 + 4
        assert ids_of(selection) == picks_of_algorithm_1(store, 5, 0.5)
        limited = store.select(QUERY, 5, lambda_d=0.5, candidates=10, most=10)
        assert (limited.certified, limited.candidates, limited.searches) == (False, 10, 1 + 4)
        assert set(ids_of(selection)) - set(ids_of(limited))


def test_selection_needs_one_search_if_candidates_cover_all_cases(location: str) -> None:
    with CaseStore(CaseSchema("plain", FACETS), location) as store:
        add_cases(store, cases_around_centres(10, 3))
        selection = store.select(QUERY, 4, candidates=store.count() + 1, most=0)
        assert selection.certified
        assert (selection.candidates, selection.searches) == (store.count(), 1)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_selection_among_equal_cases_picks_the_first_ids(location: str, share: float) -> None:
    with CaseStore(CaseSchema("plain", FACETS), location) as store:
        add_cases(store, [({"a": [1, 1, 1], "b": [1, 3]}, 0.3)] * 60)
        selection = store.select(QUERY, 7, lambda_d=share, candidates=2)
        assert (selection.certified, ids_of(selection)) == (True, [number_id(i) for i in range(7)])


@pytest.mark.parametrize("k", [12, 13, 100, 10**9, 10**20])
def test_selection_of_more_picks_than_cases_returns_all_in_order(location: str, k: int) -> None:
    with CaseStore(CaseSchema("plain", FACETS), location) as store:
        add_cases(store, cases_around_centres(12, 4)[:12])
        selection = store.select(QUERY, k, lambda_d=0.4)
        assert selection.certified
        assert ids_of(selection) == picks_of_algorithm_1(store, 12, 0.4)
        assert len(ids_of(selection)) == 12


def test_selection_of_zero_picks_or_from_no_cases_is_certified(location: str) -> None:
    with CaseStore(CaseSchema("plain", FACETS), location) as store:
        for _ in range(2):
            for k, where in ((0, None), (3, {"kind": "none"})):
                selection = store.select(QUERY, k, where=where)
                assert selection.certified
                assert (list(selection.picks), selection.candidates) == ([], 0)
            add_cases(store, cases_around_centres(3, 5), kind="some")


def test_selection_in_a_store_of_one_facet_is_certified(location: str) -> None:
    schema = CaseSchema("plain", (vector_facet("a", 3),))
    with CaseStore(schema, location) as store:
        add_cases(store, [({"a": [i % 5, i % 7, 1 - i % 3]}, None) for i in range(80)])
        selection = store.select({"a": [1, 2, 3]}, 6, lambda_d=0.6, candidates=6)
        assert selection.certified
        assert ids_of(selection) == picks_of_algorithm_1(store, 6, 0.6, {"a": [1, 2, 3]})


@pytest.mark.parametrize(
    "arguments",
    [{"k": -1}, {"k": 2.5}, {"k": None}, {"candidates": -1}, {"candidates": 0.5}, {"most": "x"}],
    ids=str,
)
def test_select_refuses_and_names_values_that_are_not_counts(arguments: dict[str, Any]) -> None:
    with CaseStore(note_schema()) as store, pytest.raises(InputError, match=next(iter(arguments))):
        store.select("red", **arguments)
