from __future__ import annotations

import pytest

from casewright.errors import InputError
from casewright.stores import CaseStore
from casewright.stores.selectors import (
    BIAS,
    RELEVANCE,
    RELEVANCE_BIAS,
    RELEVANCE_DIVERSITY,
    RELEVANCE_DIVERSITY_BIAS,
    MarginalSelector,
    PrimerSelector,
    Selector,
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


def chosen(selector: Selector, store: CaseStore, k: int = 5) -> list[int]:
    return [case.solution for case in selector.choose(store, "red apple pie", k)]


def test_bias_alone_is_the_order_of_quality(filled: CaseStore) -> None:
    assert chosen(BIAS, filled)[:2] == [3, 2]
    assert chosen(BIAS, filled)[-1] == 4


def test_relevance_alone_is_the_order_of_the_search(filled: CaseStore) -> None:
    found = [hit.case.solution for hit in filled.search("red apple pie", 5)]
    assert chosen(RELEVANCE, filled) == found
    assert found[0] == 0


def test_bias_lifts_the_better_of_two_that_are_as_relevant(filled: CaseStore) -> None:
    before, after = chosen(RELEVANCE, filled), chosen(MarginalSelector(1.0, 0.5), filled)
    assert before.index(2) > before.index(0)
    assert after.index(2) < after.index(0)
    scored = filled.search("red apple pie", 5, lambda_b=0.95)
    assert chosen(RELEVANCE_BIAS, filled) == [hit.case.solution for hit in scored]


def test_diversity_puts_off_what_is_like_what_was_picked() -> None:
    with CaseStore(note_schema()) as store:
        store.add([*CASES, note("red apple pie pie", 5, quality=0.2)])
        plain = chosen(RELEVANCE, store, 6)
        diverse = chosen(MarginalSelector(0.4, 1.0), store, 6)
        assert plain[:2] == [0, 5]
        assert diverse[0] == 0
        assert diverse.index(5) > plain.index(5)


def test_named_variants_are_the_shares_of_the_one_algorithm(filled: CaseStore) -> None:
    for variant in (RELEVANCE_DIVERSITY, RELEVANCE_DIVERSITY_BIAS):
        selection = filled.select(
            "red apple pie", 4, lambda_d=variant.lambda_d, lambda_b=variant.lambda_b
        )
        assert chosen(variant, filled, 4) == [hit.case.solution for hit in selection.hits]


def test_primer_is_the_same_for_every_question_and_keeps_its_order(filled: CaseStore) -> None:
    ids = [case.id for case in sorted(filled.all(), key=lambda case: -case.solution)]
    primer = PrimerSelector(ids[:3])
    assert chosen(primer, filled) == [4, 3, 2]
    assert chosen(primer, filled, 2) == [4, 3]
    assert [c.solution for c in primer.choose(filled, "blue plum", 3)] == [4, 3, 2]
    assert chosen(primer, filled, 0) == []


def test_primer_with_a_case_that_is_not_there_is_refused(filled: CaseStore) -> None:
    ids = [case.id for case in filled.all()][:2]
    filled.delete(ids[1])
    with pytest.raises(InputError, match=ids[1]):
        PrimerSelector(ids).choose(filled, "anything", 2)
