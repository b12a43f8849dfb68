from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.stores import Case, CaseSchema, CaseStore, Hit, select
from tests.stores.helpers import number_id, vector_facet
from tests.support.examples import at_most

SCHEMA = CaseSchema("plain", (vector_facet("a", 3), vector_facet("b", 2, 3.0)))
VECTORS = {
    name: st.none() | st.lists(st.integers(-3, 3), min_size=size, max_size=size)
    for name, size in (("a", 3), ("b", 2))
}
CASES = st.lists(
    st.tuples(st.fixed_dictionaries(VECTORS), st.none() | st.floats(0, 1)), min_size=1, max_size=9
)
WEIGHTS = st.none() | st.sampled_from([{"a": 1.0}, {"a": 0.2, "b": 0.8}, {"a": 3.0, "b": 1.0}])
LAMBDAS = st.sampled_from([0.0, 1.0, 0.5, 0.75]) | st.floats(0, 1)


def search_hits(cases: list[Any], **options: Any) -> list[Hit]:
    with CaseStore(SCHEMA) as store:
        store.add(
            Case(problem, i, quality=q, id=number_id(i)) for i, (problem, q) in enumerate(cases)
        )
        return store.search({"a": [1, 2, 0], "b": [1, -1]}, 50, **options)


def algorithm_1(hits: list[Hit], k: int, weights: dict[str, float], lambda_d: float) -> list[str]:
    """Return the ids that RAGSys's Algorithm 1, as printed, picks in O(k * n^2) similarities."""

    def similarity(left: Hit, right: Hit) -> float:
        total = 0.0
        for name, part in (("a", slice(0, 3)), ("b", slice(3, 5))):
            share = weights.get(name, 0.0) / sum(weights.values())
            vectors = [hit.vector[part].astype(np.float64) for hit in (left, right)]
            total += share * float(vectors[0] @ vectors[1])
        return total

    picks: list[Hit] = []
    while len(picks) < min(k, len(hits)):
        candidates = []
        for hit in hits:
            if not any(hit is pick for pick in picks):
                redundancy = max((similarity(hit, pick) for pick in picks), default=0.0)
                value = lambda_d * hit.score - (1 - lambda_d) * redundancy
                candidates.append((-round(value, 6), -round(hit.score, 6), hit.case.id, hit))
        picks.append(min(candidates, key=lambda candidate: candidate[:3])[3])
    return [pick.case.id for pick in picks]


@settings(max_examples=at_most(40), deadline=None)
@given(CASES, st.integers(0, 11), WEIGHTS, LAMBDAS, st.sampled_from([1.0, 0.6, 0.0]))
def test_select_picks_the_same_as_the_naive_algorithm_1(
    cases: list[Any], k: int, weights: Any, lambda_d: float, lambda_b: float
) -> None:
    hits = search_hits(cases, weights=weights, lambda_b=lambda_b)
    picks = select(hits, k, SCHEMA, lambda_d=lambda_d, weights=weights)
    expected = algorithm_1(hits, k, weights or {"a": 1.0, "b": 3.0}, lambda_d)
    assert [pick.hit.case.id for pick in picks] == expected


SPREAD = [
    ({"a": [1, 2, 0], "b": [1, -1]}, 0.1),
    ({"a": [1, 2, 0], "b": [1, -1]}, 0.9),
    ({"a": [1, 1, 0], "b": [1, -1]}, 0.5),
    ({"a": [0, 0, 1], "b": [-1, 1]}, 0.5),
    ({"a": [0, 1, 0], "b": [1, 1]}, None),
]


def test_select_with_lambda_d_one_keeps_search_order() -> None:
    hits = search_hits(SPREAD, lambda_b=0.7)
    picks = select(hits, 5, SCHEMA, lambda_d=1.0)
    assert [pick.hit for pick in picks] == hits
    assert [pick.value for pick in picks] == pytest.approx([hit.score for hit in hits])


def test_select_with_lambda_d_zero_picks_the_best_then_the_least_similar() -> None:
    picks = select(search_hits(SPREAD), 3, SCHEMA, lambda_d=0.0)
    assert [pick.hit.case.solution for pick in picks] == [0, 3, 4]
    assert picks[0].redundancy == 0
    assert picks[1].redundancy < picks[2].redundancy


def test_select_picks_a_duplicate_after_different_cases() -> None:
    picks = select(search_hits(SPREAD), 5, SCHEMA, lambda_d=0.4)
    order = [pick.hit.case.solution for pick in picks]
    assert order[0] == 0
    assert order.index(1) > order.index(4)


def test_quality_bias_changes_picks_but_not_redundancy() -> None:
    hits = search_hits(SPREAD, lambda_b=0.5)
    picks = select(hits, 5, SCHEMA)
    assert picks[0].hit.case.solution == 1
    duplicate = next(pick for pick in picks if pick.hit.case.solution == 0)
    assert duplicate.redundancy == pytest.approx(1.0, abs=1e-6)


@settings(max_examples=at_most(30), deadline=None)
@given(CASES, LAMBDAS)
def test_value_of_a_pick_follows_from_its_score_and_redundancy(
    cases: list[Any], lambda_d: float
) -> None:
    picks = select(search_hits(cases), 50, SCHEMA, lambda_d=lambda_d)
    assert len({pick.hit.case.id for pick in picks}) == len(cases)
    for pick in picks:
        value = lambda_d * pick.hit.score - (1 - lambda_d) * pick.redundancy
        assert pick.value == pytest.approx(value, abs=1e-9)


def test_select_without_hits_or_with_k_zero_returns_no_picks() -> None:
    assert select([], 3, SCHEMA) == []
    assert select(search_hits(SPREAD), 0, SCHEMA) == []
    assert len(select(search_hits(SPREAD), 99, SCHEMA)) == len(SPREAD)


@pytest.mark.parametrize(
    "args", [{"lambda_d": -0.1}, {"lambda_d": 1.1}, {"lambda_d": float("nan")}, {"k": -1}], ids=str
)
def test_invalid_selection_setting_is_refused(args: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(args))):
        select(search_hits(SPREAD), **{"k": 2, "schema": SCHEMA, **args})
