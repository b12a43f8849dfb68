from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from casewright.stores.select import mmr
from tests.stores.naive import algorithm_1
from tests.support.examples import at_most

Floats = NDArray[np.float64]
SHARES = st.sampled_from([0.0, 1.0, 0.5, 0.75, 0.95]) | st.floats(0, 1)


def unit_vectors(rows: Any) -> NDArray[np.float32]:
    vectors = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def shuffled_ids(count: int, seed: int = 0) -> list[str]:
    return [f"{number:05d}" for number in np.random.default_rng(seed).permutation(count)]


def check_against_algorithm_1(
    vectors: NDArray[np.float32], scores: Floats, k: int, share: float, weights: Any = None
) -> list[int]:
    """Check picks, redundancies and values against Algorithm 1; return the rows."""
    scale = np.ones(vectors.shape[1]) if weights is None else np.asarray(weights)
    exact = vectors.astype(np.float64)
    similarity = (exact * scale) @ exact.T
    ids = shuffled_ids(len(vectors))
    picks = mmr(vectors, scale, scores, ids, k, share)
    rows = [pick.row for pick in picks]
    assert rows == algorithm_1(similarity, list(scores), ids, k, share)
    for position, pick in enumerate(picks):
        redundancy = similarity[pick.row, rows[:position]].max() if position else 0.0
        assert pick.redundancy == pytest.approx(redundancy, abs=1e-9)
        value = share * scores[pick.row] - (1 - share) * pick.redundancy
        assert pick.value == pytest.approx(value, abs=1e-9)
    return rows


@settings(max_examples=at_most(50), deadline=None)
@given(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.integers(-2, 2)), min_size=1),
    st.integers(0, 30),
    SHARES,
    st.sampled_from([1.0, 0.6, 0.0]),
    st.sampled_from([(1.0, 1.0, 1.0), (0.75, 0.2, 0.05), (1.0, 0.0, 0.0)]),
)
def test_picks_among_few_similar_vectors_equal_algorithm_1(
    rows: Any, k: int, share: float, bias: float, weights: Any
) -> None:
    vectors = unit_vectors(rows)
    quality = np.arange(len(rows)) % 3 / 2
    relevance = (vectors.astype(np.float64) * weights) @ vectors[0]
    check_against_algorithm_1(vectors, bias * relevance + (1 - bias) * quality, k, share, weights)


def random_rows(count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    return unit_vectors(rng.normal(size=(count, 24)))


def clustered_rows(count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    return unit_vectors(rng.normal(size=(12, 24))[rng.integers(0, 12, count)])


def crowded_rows(count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return nearly equal vectors: their similarities differ in the seventh or third decimal."""
    spread = np.where(np.arange(count) % 2, 1e-7, 1e-2)[:, None]
    return unit_vectors(rng.normal(size=24) + spread * rng.normal(size=(count, 24)))


def opposed_rows(count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return vectors near a line, in both directions: half of the similarities are near -1."""
    signs = np.where(np.arange(count) % 2, 1, -1)[:, None]
    return unit_vectors(signs * rng.normal(size=24) + 0.1 * rng.normal(size=(count, 24)))


def orthogonal_rows(count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    return unit_vectors(np.eye(24)[rng.integers(0, 24, count)] * rng.choice([-1, 1], (count, 1)))


def same_rows(count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    return unit_vectors(np.tile(rng.normal(size=24), (count, 1)))


GENERATORS = [random_rows, clustered_rows, crowded_rows, opposed_rows, orthogonal_rows, same_rows]


@pytest.mark.parametrize("generate", GENERATORS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("count", "k"), [(65, 64), (300, 290), (1000, 60), (2000, 8)])
def test_picks_among_many_vectors_equal_algorithm_1(generate: Any, count: int, k: int) -> None:
    rng = np.random.default_rng(count + k)
    vectors = generate(count, rng)
    relevance = vectors.astype(np.float64) @ vectors[count // 2]
    quality = rng.integers(0, 3, count) / 2
    for share, bias in ((0.0, 1.0), (0.5, 1.0), (0.5, 0.7), (1.0, 0.7)):
        check_against_algorithm_1(vectors, bias * relevance + (1 - bias) * quality, k, share)


@pytest.mark.parametrize("generate", [random_rows, crowded_rows], ids=lambda f: f.__name__)
def test_mmr_orders_two_thousand_vectors_like_algorithm_1(generate: Any) -> None:
    vectors = generate(2000, np.random.default_rng(3))
    check_against_algorithm_1(vectors, vectors.astype(np.float64) @ vectors[7], 1998, 0.75)


def test_mmr_picks_different_vectors_behind_500_copies_of_the_first_pick() -> None:
    # The 500 most relevant vectors are equal; all others are orthogonal to each other.
    vectors = unit_vectors(np.concatenate([np.tile(np.eye(40)[0], (500, 1)), np.eye(40)[1:]]))
    scores = np.concatenate([np.full(500, 0.9), np.linspace(0.5, 0.1, 39)])
    rows = check_against_algorithm_1(vectors, scores, 40, 0.5)
    assert set(rows[1:]) == set(range(500, 539))


def test_values_equal_to_six_decimals_are_ordered_by_id() -> None:
    vectors = unit_vectors(np.eye(5))
    scores = 0.5 + np.array([0, 4e-8, 3e-7, -3e-7, 2e-6])
    picks = mmr(vectors, np.ones(5), scores, ["d", "c", "b", "a", "e"], 5, 0.8)
    assert [pick.row for pick in picks] == [4, 3, 2, 1, 0]


def test_similarity_weighs_each_dimension() -> None:
    vectors = unit_vectors([[1, 1], [1, -1], [-1, 1]])
    scores = np.array([0.9, 0.5, 0.5])
    for weights, expected in (((1.0, 0.0), [0, 2, 1]), ((0.0, 1.0), [0, 1, 2])):
        picks = mmr(vectors, np.array(weights), scores, ["0", "1", "2"], 3, 0.5)
        assert [pick.row for pick in picks] == expected
        assert picks[1].redundancy == pytest.approx(-0.5, abs=1e-6)


def test_mmr_returns_no_picks_without_vectors_or_with_k_zero() -> None:
    assert mmr(np.zeros((0, 4), dtype=np.float32), np.ones(4), np.zeros(0), [], 3, 0.5) == []
    assert mmr(unit_vectors(np.eye(4)), np.ones(4), np.ones(4), shuffled_ids(4), 0, 0.5) == []
