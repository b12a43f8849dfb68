"""The Diverse Query Sampler, compared with its five steps computed on the full matrix."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.finetune.queries import choose
from casewright.finetune.queries.choose import (
    Method,
    best_similarity,
    distinct,
    extreme_queries,
    sample,
)
from tests.support.examples import at_most

Vectors = NDArray[np.float32]
#: Few values, so that equal similarities, zero vectors and equal vectors are common.
VALUES = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0])


def pools() -> st.SearchStrategy[tuple[Vectors, Vectors]]:
    sizes = st.tuples(st.integers(1, 7), st.integers(1, 14))
    return sizes.flatmap(
        lambda n: st.tuples(
            arrays(np.float32, (n[0], 3), elements=VALUES),
            arrays(np.float32, (n[1], 3), elements=VALUES),
        )
    )


def cosines(rows: Vectors, columns: Vectors) -> NDArray[np.float64]:
    exact = [pool.astype(np.float64) for pool in (rows, columns)]
    lengths = [np.linalg.norm(pool, axis=1, keepdims=True) for pool in exact]
    left, right = (v / np.where(n > 0, n, 1) for v, n in zip(exact, lengths, strict=True))
    return np.round(left @ right.T, 6)


def naive_extremes(initial: Vectors, large: Vectors, share: float) -> set[int]:
    table = cosines(large, initial)
    count = round(share * len(large))
    nearest = sorted(range(len(large)), key=lambda i: (-table[i].max(), i))[:count]
    farthest = sorted(range(len(large)), key=lambda i: (table[i].min(), i))[:count]
    return {*nearest, *farthest}


@settings(max_examples=at_most(150), deadline=None)
@given(vectors=pools(), share=st.sampled_from([0.1, 0.25, 0.4]), block=st.integers(1, 5))
def test_extreme_queries_equal_those_of_the_full_matrix_for_any_block_size(
    vectors: tuple[Vectors, Vectors], share: float, block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose, "BLOCK_ROWS", block)
        patch.setattr(choose, "BLOCK_COLUMNS", block + 1)
        rows = extreme_queries(*vectors, share)
    assert set(rows.tolist()) == naive_extremes(*vectors, share)
    assert rows.tolist() == sorted(set(rows.tolist()))


def test_extreme_queries_take_the_first_of_equally_similar_queries() -> None:
    initial = np.array([[1.0, 0.0]], dtype=np.float32)
    large = np.array([[0, 1], [3, 0], [1, 0], [2, 0], [0, 2], [0, 3]], dtype=np.float32)
    assert extreme_queries(initial, large, 0.34).tolist() == [0, 1, 2, 4]


def test_extreme_queries_are_the_most_and_the_least_similar_ones() -> None:
    initial = np.array([[1.0, 0.0]], dtype=np.float32)
    angles = np.linspace(0, np.pi, 9)
    large = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert extreme_queries(initial, large, 0.2).tolist() == [0, 1, 7, 8]


@pytest.fixture(scope="module")
def random_pools() -> tuple[Vectors, Vectors]:
    rng = np.random.default_rng(5)
    return (
        rng.normal(size=(40, 16)).astype(np.float32),
        rng.normal(size=(900, 16)).astype(np.float32),
    )


def test_dqs_samples_from_the_large_pool_without_the_extremes(
    random_pools: tuple[Vectors, Vectors],
) -> None:
    extremes = set(extreme_queries(*random_pools, 0.1).tolist())
    refined = sample("dqs", *random_pools, 900 - len(extremes), extremes=0.1)
    assert set(refined) == set(range(900)) - extremes
    removed = sample("dqs_extremes", *random_pools, len(extremes), extremes=0.1)
    assert set(removed) == extremes


def test_dqs_large_samples_from_the_whole_large_pool(random_pools: tuple[Vectors, Vectors]) -> None:
    rows = sample("dqs_large", *random_pools, 40, extremes=0.1)
    assert len(set(rows)) == 40
    extremes = set(extreme_queries(*random_pools, 0.1).tolist())
    assert set(rows) & extremes
    assert set(rows) - extremes


@pytest.mark.parametrize("method", ["dqs", "dqs_large", "dqs_extremes"])
def test_dqs_gives_the_same_sample_for_the_same_seed(
    random_pools: tuple[Vectors, Vectors], method: Method
) -> None:
    first = sample(method, *random_pools, 25, extremes=0.1, seed=3)
    assert sample(method, *random_pools, 25, extremes=0.1, seed=3) == first
    assert sample(method, *random_pools, 25, extremes=0.1, seed=4) != first
    assert len(first) == 25


def test_extreme_queries_needs_little_memory_for_large_pools() -> None:
    rng = np.random.default_rng(0)
    initial = rng.normal(size=(600, 32)).astype(np.float32)
    peaks = []
    for size in (5_000, 20_000):
        large = rng.normal(size=(size, 32)).astype(np.float32)
        tracemalloc.start()
        extreme_queries(initial, large, 0.1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # The full matrix would be 96 MB. Per query, only a bit and a row of the result are needed.
    assert peaks[1] < 60e6
    assert peaks[1] - peaks[0] < 15_000 * 64


def test_dqs_refuses_more_queries_than_its_pool_has() -> None:
    initial, large = np.ones((5, 2), dtype=np.float32), np.ones((8, 2), dtype=np.float32)
    with pytest.raises(InputError, match=r"5 queries .* extremes pool has 0. Raise the extremes"):
        sample("dqs_extremes", initial, large, 5)
    large = np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32)
    with pytest.raises(
        InputError, match=r"8 queries .* refined pool has [0-7]. Lower the extremes"
    ):
        sample("dqs", initial, large, 8, extremes=0.4)


@pytest.mark.parametrize(
    ("initial", "large", "message"),
    [
        (np.zeros((0, 2)), np.ones((3, 2)), "initial pool is empty"),
        (np.ones((2, 2)), np.zeros((0, 2)), "pool has 0"),
        (np.ones((2, 3)), np.ones((3, 2)), "shapes"),
        (np.ones((1, 2)), np.full((3, 2), np.nan), "NaN"),
    ],
    ids=["no-initial", "no-large", "two-encoders", "nan"],
)
def test_dqs_refuses_empty_unequal_or_nan_pools(
    initial: NDArray[np.float64], large: NDArray[np.float64], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        sample("dqs", initial, large, 2)


def test_distinct_ignores_case_and_spaces_of_texts() -> None:
    texts = ["A red  lamp", "a chair", "a red lamp", "A CHAIR ", "a table", "a red lamps"]
    assert distinct(texts) == [0, 1, 4, 5]
    assert distinct(texts, excluded=["A table", "a chair"]) == [0, 5]


@settings(max_examples=at_most(80), deadline=None)
@given(vectors=pools())
def test_best_similarity_equals_that_of_the_full_matrix(vectors: tuple[Vectors, Vectors]) -> None:
    rows, columns = vectors
    assert np.allclose(best_similarity(rows, columns), cosines(rows, columns).max(axis=1))
    if len(rows) > 1:
        similarities = cosines(rows, rows)
        np.fill_diagonal(similarities, -np.inf)
        assert np.allclose(best_similarity(rows, rows, skip_self=True), similarities.max(axis=1))
