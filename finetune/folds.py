"""Folds for cross-validation that keep near-duplicates together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from casewright.finetune.neighbours import BLOCK_ROWS, unit_embeddings
from casewright.stores import Encoder

#: Two questions are near-duplicates, and share a group, if their similarity is above this number.
NEAR_DUPLICATE_SIMILARITY = 0.9


def similarity_groups(
    texts: Sequence[str], encoder: Encoder, *, threshold: float = NEAR_DUPLICATE_SIMILARITY
) -> list[int]:
    """Return a group number for each text; texts more similar than the threshold share a group.

    A chain of similar texts is one group. Memory grows with the number of similar pairs.
    """
    if not texts:
        return []
    vectors = unit_embeddings(encoder, texts)
    row_parts, column_parts = [], []
    for start in range(0, len(texts), BLOCK_ROWS):
        rows, columns = np.nonzero(vectors[start : start + BLOCK_ROWS] @ vectors.T > threshold)
        row_parts.append(rows + start)
        column_parts.append(columns)
    # The texts ``first[i]`` and ``second[i]`` are similar.
    first, second = np.concatenate(row_parts), np.concatenate(column_parts)
    groups = np.arange(len(texts))
    while True:
        # A text takes the lowest group number among similar texts, until no number changes.
        lowest = groups.copy()
        np.minimum.at(lowest, first, groups[second])
        np.minimum.at(lowest, second, groups[first])
        if np.array_equal(lowest, groups):
            return [int(group) for group in groups]
        groups = lowest


def group_folds(groups: Sequence[int], fold_count: int, *, seed: int = 0) -> list[list[int]]:
    """Return each fold's item indices. Each group, the largest first, joins the smallest fold."""
    indices_by_group: dict[int, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        indices_by_group[group].append(index)
    shuffled_groups = list(indices_by_group.values())
    np.random.default_rng(seed).shuffle(shuffled_groups)
    fold_indices: list[list[int]] = [[] for _ in range(fold_count)]
    for indices in sorted(shuffled_groups, key=len, reverse=True):
        min(fold_indices, key=len).extend(indices)
    return [sorted(fold) for fold in fold_indices]
