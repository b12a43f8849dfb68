from __future__ import annotations

import pytest

from casewright.stores import CaseStore
from casewright.stores.selectors import (
    BIAS,
    RELEVANCE,
    RELEVANCE_BIAS,
    RELEVANCE_DIVERSITY,
    RELEVANCE_DIVERSITY_BIAS,
    MarginalSelector,
)
from tests.stores.helpers import note, note_schema

CASES = [
    note("red apple pie", 0, quality=0.2),
    note("red apple pies", 1, quality=0.2),
    note("red apple cake", 2, quality=0.9),
    note("green pear tart", 3, quality=1.0),
    note("blue plum jam", 4, quality=0.0),
]


@pytest.fixture
def filled_store(store: CaseStore) -> CaseStore:
    store.add(CASES)
    return store


def solutions(selector: MarginalSelector, store: CaseStore, k: int = 5) -> list[int]:
    return [hit.case.solution for hit in selector.select(store, "red apple pie", k).hits]


def test_bias_selector_orders_by_quality(filled_store: CaseStore) -> None:
    assert solutions(BIAS, filled_store)[:2] == [3, 2]
    assert solutions(BIAS, filled_store)[-1] == 4


def test_relevance_selector_keeps_search_order(filled_store: CaseStore) -> None:
    expected = [hit.case.solution for hit in filled_store.search("red apple pie", 5)]
    assert solutions(RELEVANCE, filled_store) == expected
    assert expected[0] == 0


def test_bias_ranks_the_better_of_two_relevant_cases_higher(filled_store: CaseStore) -> None:
    plain = solutions(RELEVANCE, filled_store)
    biased = solutions(MarginalSelector(1.0, 0.5), filled_store)
    assert plain.index(2) > plain.index(0)
    assert biased.index(2) < biased.index(0)
    hits = filled_store.search("red apple pie", 5, lambda_b=0.95)
    assert solutions(RELEVANCE_BIAS, filled_store) == [hit.case.solution for hit in hits]


def test_selector_with_diversity_ranks_near_duplicates_lower() -> None:
    with CaseStore(note_schema()) as store:
        store.add([*CASES, note("red apple pie pie", 5, quality=0.2)])
        plain = solutions(RELEVANCE, store, 6)
        diverse = solutions(MarginalSelector(0.4, 1.0), store, 6)
        assert plain[:2] == [0, 5]
        assert diverse[0] == 0
        assert diverse.index(5) > plain.index(5)


def test_named_selectors_equal_store_selection_with_their_lambdas(filled_store: CaseStore) -> None:
    for selector in (RELEVANCE_DIVERSITY, RELEVANCE_DIVERSITY_BIAS):
        selection = filled_store.select(
            "red apple pie", 4, lambda_d=selector.lambda_d, lambda_b=selector.lambda_b
        )
        assert solutions(selector, filled_store, 4) == [hit.case.solution for hit in selection.hits]
