from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from casewright.finetune.folds import group_folds, similarity_groups
from tests.support.encoders import HashingEncoder
from tests.support.shipped import shop_queries

GROUPS = st.lists(st.integers(0, 8), max_size=40)


class Angles:
    """An encoder of texts that are angles in degrees, as unit vectors."""

    name = "angles"
    dimension = 2

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        radians = np.radians([float(text) for text in texts])
        return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def as_sets(groups: Sequence[int]) -> set[frozenset[int]]:
    """Return the groups as sets of indices, without the numbers of the groups."""
    return {
        frozenset(i for i, other in enumerate(groups) if other == group) for group in set(groups)
    }


def test_texts_with_similarity_above_the_threshold_form_one_group() -> None:
    groups = similarity_groups(["0", "10", "90", "95", "180"], Angles(), threshold=0.9)
    assert as_sets(groups) == {frozenset({0, 1}), frozenset({2, 3}), frozenset({4})}


def test_similarity_groups_join_chains_of_similar_texts() -> None:
    # The similarity of 0 and 40 degrees is 0.77; that of each to 20 degrees is 0.94.
    assert len(set(similarity_groups(["0", "40"], Angles(), threshold=0.9))) == 2
    assert len(set(similarity_groups(["0", "40", "20"], Angles(), threshold=0.9))) == 1


def test_number_of_similarity_groups_depends_on_the_threshold() -> None:
    texts = ["0", "20", "40"]
    assert len(set(similarity_groups(texts, Angles(), threshold=0.95))) == 3
    assert len(set(similarity_groups(texts, Angles(), threshold=0.7))) == 1


def test_similarity_groups_span_the_blocks_of_a_large_matrix() -> None:
    texts = [str(i % 36 * 10) for i in range(2100)]
    groups = similarity_groups(texts, Angles(), threshold=0.99)
    assert as_sets(groups) == {frozenset(range(i, 2100, 36)) for i in range(36)}


def test_similarity_groups_ignore_the_length_of_vectors() -> None:
    # Vectors of word counts have no unit length: unlike texts have a large dot product.
    texts = ["where is my parcel now", "where is my old red tent", "where is my parcel now"]
    assert as_sets(similarity_groups(texts, HashingEncoder(256))) == {
        frozenset({0, 2}),
        frozenset({1}),
    }


def test_similarity_groups_of_no_texts_are_empty() -> None:
    assert similarity_groups([], Angles()) == []


@settings(deadline=None)
@given(GROUPS, st.integers(1, 6), st.integers(0, 3))
def test_folds_cover_every_item_once_and_keep_groups_together(
    groups: list[int], folds: int, seed: int
) -> None:
    fold_list = group_folds(groups, folds, seed=seed)
    assert len(fold_list) == folds
    assert sorted(i for fold in fold_list for i in fold) == list(range(len(groups)))
    for group in set(groups):
        assert sum(any(groups[i] == group for i in fold) for fold in fold_list) == 1


@settings(deadline=None)
@given(GROUPS, st.integers(1, 6))
def test_fold_sizes_differ_by_at_most_the_largest_group(groups: list[int], folds: int) -> None:
    sizes = [len(fold) for fold in group_folds(groups, folds)]
    assert max(sizes) - min(sizes) <= max((groups.count(group) for group in groups), default=0)


@settings(deadline=None)
@given(GROUPS, st.integers(1, 4))
def test_group_folds_are_equal_for_equal_seeds(groups: list[int], seed: int) -> None:
    assert group_folds(groups, 3, seed=seed) == group_folds(groups, 3, seed=seed)


def test_group_folds_differ_for_different_seeds() -> None:
    assert group_folds(range(30), 3, seed=1) != group_folds(range(30), 3, seed=2)


@pytest.mark.parametrize("folds", [2, 5])
def test_equal_shopping_questions_are_never_in_two_folds(folds: int) -> None:
    texts = [query.query for query in shop_queries()]
    fold_list = group_folds(similarity_groups(texts * 2, HashingEncoder(256)), folds)
    fold_of = {i: number for number, fold in enumerate(fold_list) for i in fold}
    assert all(fold_of[i] == fold_of[i + len(texts)] for i in range(len(texts)))
