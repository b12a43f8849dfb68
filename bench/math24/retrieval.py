"""How many of the nearest cases are of a common class: the paper's Table 1.

SCO asks for a common larger factor; SCD for one with the same pair (the paper's "solution class"
and "solution class and decomposition").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from casewright.bench.math24.data import Puzzles
from casewright.domains.math24.decomposition import Class

#: Nearest cases that are looked at; each figure is the mean over them.
KS = (1, 2, 3, 4, 5)
NAMES = ("precision", "recall", "F1", "NDCG", "MRR")

Floats = NDArray[np.float64]
Labels = Sequence[frozenset[Class]]
#: From places of training puzzles and their labels, and a run's number: a vector for each puzzle.
Represent = Callable[[Sequence[int], Labels, int], NDArray[np.float32]]
Relevant = Callable[[frozenset[Class], frozenset[Class]], bool]


def same_factor(one: frozenset[Class], other: frozenset[Class]) -> bool:
    """SCO: say whether two puzzles have a larger factor in common."""
    return bool({larger for larger, *_ in one} & {larger for larger, *_ in other})


def same_class(one: frozenset[Class], other: frozenset[Class]) -> bool:
    """SCD: say whether they have one in common that the same pair makes."""
    return bool(one & other)


RELEVANT: dict[str, Relevant] = {"SCO": same_factor, "SCD": same_class}


def table_of(puzzles: Puzzles, represent: Represent, runs: Sequence[int]) -> dict[str, Floats]:
    """Return SCO's and SCD's figures of each k, mean of the runs: arrays (k, figure).

    Args:
        puzzles: With their splits. A run's other puzzles are its cases.
        represent: Makes the vectors that are compared by their cosine.
        runs: Which.
    """
    found: dict[str, list[Floats]] = {name: [] for name in RELEVANT}
    for run in runs:
        training = puzzles.training(run)
        vectors = represent(training, [puzzles.classes[place] for place in training], run)
        order = nearest(vectors, puzzles.splits[run], training)
        for name, relevant in RELEVANT.items():
            found[name].append(_figures(puzzles, order, puzzles.splits[run], training, relevant))
    return {name: np.mean(each, axis=0) for name, each in found.items()}


def nearest(
    vectors: NDArray[np.float32], asked: Sequence[int], cases: Sequence[int]
) -> NDArray[np.intp]:
    """Return each asked puzzle's nearest cases by cosine, array (asked, 5), the best first."""
    exact = vectors.astype(np.float64)
    units = exact / np.maximum(np.linalg.norm(exact, axis=1, keepdims=True), 1e-12)
    likeness = units[list(asked)] @ units[list(cases)].T
    order = np.argsort(-likeness, axis=1, kind="stable")[:, : KS[-1]]
    return np.asarray(np.array(cases)[order])


def _figures(
    puzzles: Puzzles,
    order: NDArray[np.intp],
    asked: Sequence[int],
    cases: Sequence[int],
    relevant: Relevant,
) -> Floats:
    def judge(test: int, case: int) -> bool:
        return relevant(puzzles.classes[test], puzzles.classes[case])

    hits = np.array(
        [[judge(test, case) for case in row] for test, row in zip(asked, order, strict=True)]
    )
    there = np.array([sum(judge(test, case) for case in cases) for test in asked])
    gains = 1 / np.log2(np.arange(2, KS[-1] + 2))
    rows = []
    for k in KS:
        some = hits[:, :k]
        precision = some.mean(axis=1)
        recall = some.sum(axis=1) / np.maximum(there, 1)
        both = precision + recall
        f1 = np.divide(2 * precision * recall, both, out=np.zeros_like(both), where=both > 0)
        # The paper's ideal has k relevant ones, however many there are.
        ndcg = (some * gains[:k]).sum(axis=1) / gains[:k].sum()
        first = np.where(some.any(axis=1), 1 / (some.argmax(axis=1) + 1), 0)
        rows.append([figure.mean() for figure in (precision, recall, f1, ndcg, first)])
    return np.array(rows)
