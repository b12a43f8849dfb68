"""Similarities within and between pools of vectors, block by block.

No matrix is larger than one block, so memory does not grow with the pools. Sums are made in double
precision and compared to six decimals: how a product is cut into blocks does not change a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.planner.spans import normalized

Vectors = NDArray[np.floating]
Floats = NDArray[np.float64]
#: Rows and columns of a similarity matrix that are held at once.
ROWS, COLUMNS = 256, 2048
#: To how many decimals similarities are compared.
DECIMALS = 6


def distinct(texts: Sequence[str], known: Sequence[str] = ()) -> list[int]:
    """Return where each text stands first, but for those that are known already.

    Texts that differ in nothing but case and spaces are one.
    """
    seen = {normalized(text) for text in known}
    results = []
    for index, text in enumerate(texts):
        if (key := normalized(text)) not in seen:
            seen.add(key)
            results.append(index)
    return results


def check_pools(*pools: Vectors) -> None:
    """Raise ``InputError`` where pools are no arrays (n, d) of one d, or are not finite."""
    shapes = [np.shape(pool) for pool in pools]
    if any(len(shape) != 2 for shape in shapes) or len({shape[1] for shape in shapes}) > 1:
        raise InputError(
            f"The pools' vectors have the shapes {shapes}. Give arrays (queries, dimension) of one "
            "encoder."
        )
    if not all(np.isfinite(pool[part]).all() for pool in pools for part in blocks(len(pool), 1024)):
        raise InputError("The pools' vectors hold NaN or infinity. Embed the queries again.")


def blocks(count: int, size: int) -> Iterator[slice]:
    """Cut ``count`` rows into blocks."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def units(vectors: Vectors) -> Floats:
    """Return vectors at unit length in double precision; a zero vector stays: it is like none."""
    exact = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    return exact / np.where(lengths > 0, lengths, 1.0)


def best_similarity(rows: Vectors, columns: Vectors, *, others: bool = False) -> Floats:
    """Return each row's highest cosine to any of the columns.

    Args:
        rows: Array (n, d).
        columns: Array (m, d), at least one.
        others: Rows and columns are the same, and none is compared with itself.

    Returns:
        Array (n).
    """
    best = np.full(len(rows), -np.inf)
    for part in blocks(len(rows), ROWS):
        own = units(rows[part])
        for index in blocks(len(columns), COLUMNS):
            near = own @ units(columns[index]).T
            if others:
                same = np.arange(part.start, part.stop)
                inside = (same >= index.start) & (same < index.stop)
                near[inside, same[inside] - index.start] = -np.inf
            np.maximum(best[part], near.max(axis=1), out=best[part])
    return best
