"""Facility location, compared with a plain greedy algorithm and with the best of all picks."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.finetune.queries import choose as module
from casewright.finetune.queries.choose import facility_location
from tests.support.examples import at_most

Vectors = NDArray[np.float64]
VALUES = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 3.0])


def pool(low: int, high: int) -> st.SearchStrategy[Vectors]:
    return st.integers(low, high).flatmap(lambda n: arrays(np.float64, (n, 3), elements=VALUES))


def similarities(vectors: Vectors, others: Vectors) -> Vectors:
    def unit(rows: Vectors) -> Vectors:
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(lengths > 0, lengths, 1))

    return np.asarray(np.maximum(unit(vectors) @ unit(others).T, 0))


def value(similarity: Vectors, picks: tuple[int, ...]) -> float:
    return float(similarity[:, list(picks)].max(axis=1).sum()) if picks else 0.0


def naive_picks(vectors: Vectors, size: int, chosen: Vectors) -> list[int]:
    table = np.concatenate([similarities(vectors, vectors), similarities(vectors, chosen)], axis=1)
    fixed = tuple(range(len(vectors), table.shape[1]))
    picks: list[int] = []
    for _ in range(size):
        free = [i for i in range(len(vectors)) if i not in picks]
        gains = [value(table, (*fixed, *picks, i)) - value(table, (*fixed, *picks)) for i in free]
        picks.append(free[int(np.argmax(np.round(gains, 6)))])
    return picks


@settings(max_examples=at_most(120), deadline=None)
@given(vectors=pool(1, 12), chosen=pool(0, 3), share=st.floats(0, 1), block=st.integers(1, 6))
def test_facility_location_equals_the_plain_greedy_algorithm(
    vectors: Vectors, chosen: Vectors, share: float, block: int
) -> None:
    size = round(share * len(vectors))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_ROWS", block)
        patch.setattr(module, "BLOCK_COLUMNS", block + 1)
        assert facility_location(vectors, size, chosen=chosen) == naive_picks(vectors, size, chosen)


@settings(max_examples=at_most(80), deadline=None)
@given(vectors=pool(3, 8))
def test_facility_location_value_is_within_its_guarantee_of_the_optimum(vectors: Vectors) -> None:
    similarity = similarities(vectors, vectors)
    best = max(value(similarity, picks) for picks in combinations(range(len(vectors)), 3))
    result = value(similarity, tuple(facility_location(vectors, 3)))
    assert result >= (1 - 1 / np.e) * best - 1e-6


def test_facility_location_picks_one_query_of_each_cluster() -> None:
    rng = np.random.default_rng(2)
    centres = np.eye(6) * 5
    vectors = np.repeat(centres, 30, axis=0) + rng.normal(scale=0.3, size=(180, 6))
    picks = facility_location(vectors, 6)
    assert sorted(pick // 30 for pick in picks) == list(range(6))


def test_facility_location_skips_clusters_that_chosen_queries_cover() -> None:
    vectors = np.repeat(np.eye(3), [5, 3, 2], axis=0)
    assert facility_location(vectors, 2) == [0, 5]
    assert facility_location(vectors, 2, chosen=np.eye(3)[:1]) == [5, 8]


def test_facility_location_refuses_a_pool_smaller_than_the_sample() -> None:
    with pytest.raises(InputError, match="4 queries cannot be drawn: the large pool has 3"):
        facility_location(np.eye(3), 4)
