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
def filled(store: CaseStore) -> CaseStore:
    store.add(CASES)
    return store


def chosen(selector: MarginalSelector, store: CaseStore, k: int = 5) -> list[int]:
    return [hit.case.solution for hit in selector.select(store, "red apple pie", k).hits]


def test_bias_selector_orders_by_quality(filled: CaseStore) -> None:
    assert chosen(BIAS, filled)[:2] == [3, 2]
    assert chosen(BIAS, filled)[-1] == 4


def test_relevance_selector_keeps_search_order(filled: CaseStore) -> None:
    found = [hit.case.solution for hit in filled.search("red apple pie", 5)]
    assert chosen(RELEVANCE, filled) == found
    assert found[0] == 0


def test_selector_with_bias_ranks_the_better_of_two_relevant_cases_higher(
    filled: CaseStore,
) -> None:
    before, after = chosen(RELEVANCE, filled), chosen(MarginalSelector(1.0, 0.5), filled)
    assert before.index(2) > before.index(0)
    assert after.index(2) < after.index(0)
    scored = filled.search("red apple pie", 5, lambda_b=0.95)
    assert chosen(RELEVANCE_BIAS, filled) == [hit.case.solution for hit in scored]


def test_selector_with_diversity_ranks_near_duplicates_lower() -> None:
    with CaseStore(note_schema()) as store:
        store.add([*CASES, note("red apple pie pie", 5, quality=0.2)])
        plain = chosen(RELEVANCE, store, 6)
        diverse = chosen(MarginalSelector(0.4, 1.0), store, 6)
        assert plain[:2] == [0, 5]
        assert diverse[0] == 0
        assert diverse.index(5) > plain.index(5)


def test_named_selectors_equal_store_selection_with_their_lambdas(filled: CaseStore) -> None:
    for variant in (RELEVANCE_DIVERSITY, RELEVANCE_DIVERSITY_BIAS):
        selection = filled.select(
            "red apple pie", 4, lambda_d=variant.lambda_d, lambda_b=variant.lambda_b
        )
        assert chosen(variant, filled, 4) == [hit.case.solution for hit in selection.hits]
