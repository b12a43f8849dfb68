from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.stores import Case, CaseSchema, CaseStore
from tests.stores.helpers import note, note_schema, number_id, vector_facet
from tests.support.examples import at_most

DIMENSIONS = {"a": 3, "b": 2}
SHARES = st.floats(0, 1) | st.sampled_from([0.0, 1e-6, 0.5, 1.0])
# With a bias above 1, the weight of the quality is negative.
BIASES = SHARES | st.floats(1, 2)


def vectors(dimension: int) -> st.SearchStrategy[list[int] | None]:
    return st.none() | st.lists(st.integers(-3, 3), min_size=dimension, max_size=dimension)


PROBLEMS = st.fixed_dictionaries({name: vectors(size) for name, size in DIMENSIONS.items()})
RANGES = st.sampled_from([(0.0, 1.0), (-20.0, 0.0), (-1.0, 1.0)])
# Quality as a share of the range; a share outside of 0 to 1 is clamped.
QUALITIES = st.none() | st.floats(-0.5, 1.5)
CASES = st.lists(st.tuples(PROBLEMS, QUALITIES), min_size=1, max_size=6)
WEIGHTS = st.fixed_dictionaries({"a": SHARES, "b": SHARES}).filter(lambda w: sum(w.values()) > 0.01)


def cosine(left: list[int] | None, right: list[int] | None) -> float:
    if left is None or right is None or not any(left) or not any(right):
        return 0.0
    return float(np.dot(left, right) / (np.linalg.norm(left) * np.linalg.norm(right)))


@settings(max_examples=at_most(30), deadline=None)
@given(CASES, CASES, PROBLEMS, WEIGHTS, BIASES, RANGES)
def test_score_is_the_weighted_sum_of_facet_cosines_plus_the_quality_share(
    first: list[Any], second: list[Any], query: Any, weights: Any, lambda_b: float, limits: Any
) -> None:
    assume(lambda_b == 0 or any(query[n] is not None and weights[n] for n in DIMENSIONS))
    low, high = limits
    schema = CaseSchema("plain", tuple(vector_facet(*f) for f in DIMENSIONS.items()), limits)
    qualities = [None if q is None else low + q * (high - low) for _, q in first + second]
    clamped = [None if q is None else min(max(q, low), high) for q in qualities]
    known = [q for q in clamped[: len(first)] if q is not None]
    mean = np.mean(known) if known else (low + high) / 2
    cases = [
        Case(problem, i, quality=quality, id=number_id(i))
        for i, ((problem, _), quality) in enumerate(zip(first + second, qualities, strict=True))
    ]
    with CaseStore(schema) as store:
        store.add(cases[: len(first)])
        store.add(cases[len(first) :])
        hits = store.search(query, 20, weights=weights, lambda_b=lambda_b)
    assert {hit.case.id for hit in hits} == {case.id for case in cases}
    for hit in hits:
        problem = hit.case.problem
        cosines = {name: cosine(query[name], problem[name]) for name in DIMENSIONS}
        relevance = sum(weights[n] * cosines[n] for n in DIMENSIONS) / sum(weights.values())
        quality = clamped[hit.case.solution]
        score = lambda_b * relevance + (1 - lambda_b) * (mean if quality is None else quality)
        tolerance = 2e-6 * (1 + high - low)
        assert hit.facet_scores == pytest.approx(cosines, abs=1e-6)
        assert hit.relevance == pytest.approx(relevance, abs=1e-6)
        assert hit.score == pytest.approx(score, abs=tolerance)


def test_search_without_weights_uses_the_facet_weights(store: CaseStore) -> None:
    store.add(
        [Case({"question": "red", "support": "x"}, 1), Case({"question": "y", "support": "red"}, 2)]
    )
    hits = store.search("red", 2)
    assert [hit.case.solution for hit in hits] == [1, 2]
    assert [hit.score for hit in hits] == pytest.approx([0.75, 0.25], abs=1e-6)


def test_facet_missing_from_search_weights_has_weight_zero(store: CaseStore) -> None:
    store.add(
        [Case({"question": "red", "support": "x"}, 1), Case({"question": "y", "support": "red"}, 2)]
    )
    hits = store.search("red", 2, weights={"support": 7})
    assert [hit.case.solution for hit in hits] == [2, 1]
    assert [hit.score for hit in hits] == pytest.approx([1, 0], abs=1e-6)


def test_absent_component_scores_zero_and_is_not_renormalised(store: CaseStore) -> None:
    store.add([note("red", 1)])
    (hit,) = store.search("red")
    assert hit.facet_scores == pytest.approx({"question": 1.0, "support": 0.0}, abs=1e-6)
    assert hit.score == pytest.approx(0.75, abs=1e-6)


def test_hits_of_equal_score_are_ordered_by_id_for_every_k(store: CaseStore) -> None:
    ids = [number_id(i) for i in range(60)]
    shuffled_ids = sorted(ids, key=lambda i: hash((i, 7)))
    store.add([note("the same question", i, id=i) for i in shuffled_ids])
    store.add([note("same", "best", id=number_id(99))])
    for k in (1, 5, 20, 59):
        hits = store.search({"question": "the same question"}, k)
        assert [hit.case.id for hit in hits] == ids[:k]
    assert len(store.search("same", 500)) == 61


def test_hits_are_ordered_by_rounded_score() -> None:
    # Two scores round to 0.500000; before the mean quality is added, they round differently.
    qualities = [0.5000001, 0.5000004, 0.1999986]
    cases = [note(f"q {i}", i, quality=q, id=number_id(i)) for i, q in enumerate(qualities)]
    with CaseStore(note_schema()) as store:
        store.add(cases)
        hits = store.search("zzz", 3, lambda_b=0.0)
    assert [round(hit.score, 6) for hit in hits[:2]] == [0.5, 0.5]
    assert [hit.case.solution for hit in hits] == [0, 1, 2]


@settings(max_examples=at_most(40), deadline=None)
@example([0.3125, 0.375], 0.99999, 1)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=12), BIASES, st.integers(1, 12))
def test_hits_are_ordered_by_falling_rounded_score_then_id(
    qualities: list[float], lambda_b: float, k: int
) -> None:
    cases = [note("q", i, quality=q, id=number_id(i)) for i, q in enumerate(qualities)]
    with CaseStore(note_schema()) as store:
        store.add(cases)
        all_hits = store.search("q", 50, lambda_b=lambda_b)
        first_hits = store.search("q", k, lambda_b=lambda_b)
    keys = [(-round(hit.score, 6), hit.case.id) for hit in all_hits]
    assert keys == sorted(keys)
    assert [hit.case.id for hit in first_hits] == [hit.case.id for hit in all_hits[:k]]


def test_memory_and_folder_give_the_same_results_in_the_same_order(folder: Any) -> None:
    words = ["red", "green", "blue", "apple", "pear", "plum", "train", "ship"]
    cases = [
        Case(
            {"question": f"{words[i % 8]} {words[i * 3 % 7]}", "support": words[i * 5 % 8]},
            i,
            quality=None if i % 3 == 0 else (i % 11) / 10,
            metadata={"part": i % 4},
        )
        for i in range(150)
    ]
    with (
        CaseStore(note_schema()) as memory,
        CaseStore(note_schema(), folder) as on_disk,
    ):
        assert memory.add(cases) == on_disk.add(cases)
        for k, lambda_b, where in [(7, 1.0, None), (20, 0.5, {"part": 1}), (200, 0.0, None)]:
            results = [
                [
                    (hit.case.solution, round(hit.score, 5))
                    for hit in store.search("red apple", k, lambda_b=lambda_b, where=where)
                ]
                for store in (memory, on_disk)
            ]
            assert results[0] == results[1]


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"k": 0}, "k=0"),
        ({"k": -3}, "k=-3"),
        ({"lambda_b": 2.01}, "lambda_b"),
        ({"lambda_b": -0.01}, "lambda_b"),
        ({"lambda_b": math.nan}, "lambda_b"),
        ({"weights": {"nothing": 1.0}}, "nothing"),
        ({"weights": {"question": -1.0, "support": 2.0}}, "at least 0"),
        ({"weights": {"question": 0.0}}, "not all 0"),
        ({"weights": {"question": math.nan}}, "question"),
        ({"weights": {"question": math.inf}}, "question"),
    ],
    ids=str,
)
def test_invalid_search_setting_is_refused_by_name(
    store: CaseStore, settings_: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        store.search("red", **settings_)
    store.add([note("red")])
    with pytest.raises(InputError, match=message):
        store.search("red", **settings_)


@pytest.mark.parametrize("query", ["", {}, {"questoin": "red"}, {"question": ""}], ids=str)
def test_query_that_no_facet_can_read_is_refused_with_the_readable_components(
    store: CaseStore, query: Any
) -> None:
    store.add([note("red", 1)])
    for find in (store.search, store.select):
        with pytest.raises(InputError, match=r"'question': \['question'\]"):
            find(query, 2)
    # With ``lambda_b=0``, the score does not depend on the query.
    assert [hit.case.solution for hit in store.search(query, 2, lambda_b=0.0)] == [1]


def test_add_of_a_single_case_without_a_list_is_refused(store: CaseStore) -> None:
    with pytest.raises(InputError, match=r"add\(\[case\]\)"):
        store.add(note("red", 1))  # type: ignore[arg-type]
