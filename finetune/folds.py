"""Folds for cross-validation that keep near-duplicates together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from casewright.finetune.neighbours import BLOCK, unit_embeddings
from casewright.stores import Encoder

#: The similarity above which two questions are near-duplicates, and in one group.
SAME_GROUP = 0.9


def similarity_groups(
    texts: Sequence[str], encoder: Encoder, *, threshold: float = SAME_GROUP
) -> list[int]:
    """Return the number of each text's group; two texts above the threshold share a group.

    Memory grows with the number of pairs above the threshold.
    """
    if not texts:
        return []
    vectors = unit_embeddings(encoder, texts)
    rows, columns = [], []
    for start in range(0, len(texts), BLOCK):
        row, column = np.nonzero(vectors[start : start + BLOCK] @ vectors.T > threshold)
        rows.append(row + start)
        columns.append(column)
    first, second = np.concatenate(rows), np.concatenate(columns)
    groups = np.arange(len(texts))
    while True:
        # Each text takes the lowest number of the texts that are near it.
        lowest = groups.copy()
        np.minimum.at(lowest, first, groups[second])
        np.minimum.at(lowest, second, groups[first])
        if np.array_equal(lowest, groups):
            return [int(group) for group in groups]
        groups = lowest


def group_folds(groups: Sequence[int], folds: int, *, seed: int = 0) -> list[list[int]]:
    """Return the indices of each fold's items: groups, from the largest, join the smallest fold."""
    members: dict[int, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        members[group].append(index)
    order = list(members.values())
    np.random.default_rng(seed).shuffle(order)
    results: list[list[int]] = [[] for _ in range(folds)]
    for indices in sorted(order, key=len, reverse=True):
        min(results, key=len).extend(indices)
    return [sorted(fold) for fold in results]
