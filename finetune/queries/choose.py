"""Similarities of pools of queries, methods that sample a pool, and the queries of a recipe.

Similarities are made block by block, so that memory does not grow with the pools. Sums are made in
double precision and compared to six decimals: the cut into blocks does not change a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from casewright.errors import InputError
from casewright.finetune.section import Section
from casewright.planner import AnnotatedQuery
from casewright.planner.spans import normalized
from casewright.stores import Encoder

Vectors = NDArray[np.floating]
Floats = NDArray[np.float64]
#: Rows and columns of a block of the similarity matrix.
ROWS, COLUMNS = 256, 2048
#: Decimals to which similarities are compared.
DECIMALS = 6


def distinct(texts: Sequence[str], known: Sequence[str] = ()) -> list[int]:
    """Return the index of each text's first occurrence, without texts that are in ``known``.

    Texts that differ only in case and spaces count as one.
    """
    first: dict[str, int] = {}
    for index, text in enumerate(texts):
        first.setdefault(normalized(text), index)
    for text in known:
        first.pop(normalized(text), None)
    return list(first.values())


def check_pools(*pools: Vectors) -> None:
    """Raise ``InputError`` if pools are not finite arrays (n, d) of one d."""
    shapes = [np.shape(pool) for pool in pools]
    if any(len(shape) != 2 for shape in shapes) or len({shape[1] for shape in shapes}) > 1:
        raise InputError(
            f"The pools' vectors have the shapes {shapes}. Give arrays (queries, dimension) of one "
            "encoder."
        )
    if not all(np.isfinite(pool[part]).all() for pool in pools for part in blocks(len(pool), 1024)):
        raise InputError("The pools' vectors hold NaN or infinity. Embed the queries again.")


def blocks(count: int, size: int) -> Iterator[slice]:
    """Cut ``count`` rows into blocks of ``size``."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def units(vectors: Vectors) -> Floats:
    """Return vectors at unit length in double precision; a zero vector stays zero."""
    exact = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    return exact / np.where(lengths > 0, lengths, 1.0)


def best_similarity(rows: Vectors, columns: Vectors, *, others: bool = False) -> Floats:
    """Return each row's highest cosine to any column, array (n).

    Args:
        rows: Array (n, d).
        columns: Array (m, d), m > 0.
        others: ``columns`` are the rows again; no row is compared with itself.
    """
    best = np.full(len(rows), -np.inf)
    for part in blocks(len(rows), ROWS):
        block = units(rows[part])
        for index in blocks(len(columns), COLUMNS):
            near = block @ units(columns[index]).T
            if others:
                same = np.arange(part.start, part.stop)
                inside = (same >= index.start) & (same < index.stop)
                near[inside, same[inside] - index.start] = -np.inf
            np.maximum(best[part], near.max(axis=1), out=best[part])
    return best


def facility_location(vectors: Vectors, size: int, *, chosen: Vectors | None = None) -> list[int]:
    """Pick queries of a pool greedily by facility location.

    The picks S maximise f(S), the sum over the pool's queries of the highest similarity to a pick,
    similarities below 0 counting as 0. f is monotone and submodular, so the greedy picks reach at
    least (1 - 1/e) of the best value (Nemhauser, Wolsey and Fisher 1978). Time grows with the
    square of the pool's size, memory with the pool.

    Args:
        vectors: Array (N, d), the pool.
        chosen: Array (n, d), earlier picks, which need not be of the pool.

    Returns:
        Rows of the pool in the order of the picks. Gains are compared to six decimals; of equal
        ones the lower row is picked.

    Raises:
        InputError: The pool is no array of vectors, or smaller than ``size``.
    """
    earlier = vectors[:0] if chosen is None else chosen
    check_pools(vectors, earlier)
    count = len(vectors)
    if size > count:
        raise InputError(
            f"{size:,} queries are to be picked from {count:,}. Give a larger pool, or ask for "
            "fewer."
        )
    covered = np.zeros(count)
    if len(earlier) and count:
        covered = np.maximum(best_similarity(vectors, earlier), 0.0)
    # A candidate's first gain is its loss once nothing is left to gain.
    gains = _losses(vectors, np.arange(count), covered, np.full(count, np.inf))
    picks: list[int] = []
    while len(picks) < size:
        best = int(np.argmax(np.round(gains, DECIMALS)))
        picks.append(best)
        near = np.maximum(best_similarity(vectors, vectors[best : best + 1]), covered)
        nearer = np.flatnonzero(near > covered)
        gains -= _losses(vectors, nearer, covered[nearer], near[nearer])
        gains[best] = -np.inf
        covered = near
    return picks


def _losses(vectors: Vectors, rows: NDArray[np.int64], before: Floats, after: Floats) -> Floats:
    """Return by how much each candidate's gain shrinks when these rows are covered better."""
    losses = np.zeros(len(vectors))
    for part in blocks(len(rows), ROWS):
        block = units(vectors[rows[part]])
        low, high = before[part, None], after[part, None]
        for index in blocks(len(vectors), COLUMNS):
            near = block @ units(vectors[index]).T
            losses[index] += np.clip(near, low, high, out=near).sum(axis=0) - low.sum()
    return losses


#: The share of the large pool that is extreme at either end, unless another is given.
EXTREMES = 0.05


def extreme_queries(initial: Vectors, large: Vectors, share: float) -> NDArray[np.int64]:
    """Return the rows of the large pool in the most and the least similar pairs, ascending.

    There are ``share * N`` rows at either end, rounded. Similarities are compared to six decimals;
    of equal ones the lower row is taken.
    """
    count = round(share * len(large))
    nearest = _highest(best_similarity(large, initial), count)
    farthest = _highest(best_similarity(large, -np.asarray(initial)), count)
    return np.union1d(nearest, farthest).astype(np.int64)


def _highest(similarities: Floats, count: int) -> NDArray[np.int64]:
    return np.argsort(-np.rint(similarities * 10**DECIMALS), kind="stable")[:count]


Method = Literal["dqs", "dqs_large", "dqs_extremes", "facility_location", "random"]
METHODS: tuple[Method, ...] = get_args(Method)
#: Draws of one seed that must not be the same draw: the initial pool, and a random sample.
_INITIAL, _RANDOM = 1, 2


class SamplingSettings(Section):
    """The choice of annotated queries to learn from.

    Attributes:
        method: ``all``; ``random``; or a method that adds queries to an initial pool, which the
            seed draws.
        size: Number of queries, the initial pool included; by default twice the initial pool.
        initial: Size of the initial pool; below 1, a share of the queries.
        extremes: For DQS, the share of the other queries that is extreme at either end.
    """

    method: Literal["all"] | Method = "all"
    size: int | None = Field(default=None, ge=1)
    initial: float = Field(default=0.1, gt=0)
    extremes: float = Field(default=EXTREMES, gt=0, lt=0.5)

    @model_validator(mode="after")
    def _initial_is_whole_or_a_share(self) -> Self:
        if self.initial >= 1 and not self.initial.is_integer():
            raise ValueError("initial is a whole number of queries, or a share below 1")
        adds = self.method not in ("all", "random")
        if adds and self.size is not None and 1 <= self.initial >= self.size:
            raise ValueError(
                f"size ({self.size}) counts the initial queries ({self.initial:g}) too, and must "
                "be larger"
            )
        return self


def sample(
    method: Method,
    initial: Vectors,
    large: Vectors,
    size: int,
    *,
    extremes: float = EXTREMES,
    seed: int = 0,
) -> list[int]:
    """Sample a large pool by a method's name; return its rows, ascending.

    Args:
        method: ``dqs`` draws from the large pool without its extremes, ``dqs_large`` from all of
            it, ``dqs_extremes`` from its extremes; ``facility_location`` picks what the initial
            pool does not cover; ``random`` is the control.
        initial: Array (n, d).
        large: Array (N, d); equal queries are best removed before.
        extremes: The share of the large pool that is extreme at either end.

    Raises:
        InputError: A pool is empty or no array of vectors, or there are too few queries.
    """
    if method == "random":
        return _draw(len(large), size, [seed, _RANDOM])
    if method == "facility_location":
        return sorted(facility_location(large, size, chosen=initial))
    check_pools(initial, large)
    if not len(initial):
        raise InputError("The initial pool is empty. DQS needs at least one query to start from.")
    rows = np.arange(len(large))
    source, mend = "large", "Give a larger pool, or ask for fewer."
    if method != "dqs_large":
        removed = extreme_queries(initial, large, extremes)
        source, rows, change = "refined", np.setdiff1d(rows, removed), "Lower"
        if method == "dqs_extremes":
            source, rows, change = "extremes", removed, "Raise"
        mend = f"{change} the extremes (now {extremes}), or ask for fewer."
    if len(rows) < size:
        raise InputError(
            f"{size:,} queries are to be sampled, and the {source} pool has {len(rows):,}. {mend}"
        )
    return [int(row) for row in rows[_draw(len(rows), size, seed)]]


def choose_queries(
    queries: Sequence[AnnotatedQuery], settings: SamplingSettings, encoder: Encoder, seed: int
) -> list[AnnotatedQuery]:
    """Choose the annotated queries to learn from, in their own order.

    Queries of the same words (but for case and spaces) and the same plan count once, except for
    the method ``all``.

    Raises:
        InputError: There are fewer than the settings ask for.
    """
    if settings.method == "all":
        return list(queries)
    unique = _unique(queries)
    count = _initial_size(unique, settings)
    size = settings.size or 2 * count
    if settings.method == "random":
        return [unique[row] for row in _draw(len(unique), size, [seed, _RANDOM])]
    if not count < size <= len(unique):
        raise InputError(
            f"sampling: {size:,} queries are wanted, {count:,} of them as the initial pool, and "
            f"there are {len(unique):,} different ones. Set size between the two, or initial lower."
        )
    initial = _draw(len(unique), count, [seed, _INITIAL])
    others = sorted(set(range(len(unique))) - set(initial))
    vectors = encoder.embed([query.query for query in unique])
    rows = sample(
        settings.method,
        vectors[initial],
        vectors[others],
        size - count,
        extremes=settings.extremes,
        seed=seed,
    )
    return [unique[row] for row in sorted([*initial, *(others[row] for row in rows)])]


def initial_queries(
    queries: Sequence[AnnotatedQuery], settings: SamplingSettings, seed: int
) -> list[AnnotatedQuery]:
    """Return the initial pool of ``choose_queries``; errors as there."""
    unique = _unique(queries)
    rows = _draw(len(unique), _initial_size(unique, settings), [seed, _INITIAL])
    return [unique[row] for row in rows]


def _unique(queries: Sequence[AnnotatedQuery]) -> list[AnnotatedQuery]:
    first: dict[tuple[str, str], AnnotatedQuery] = {}
    for query in queries:
        first.setdefault((normalized(query.query), str(query.plan)), query)
    return list(first.values())


def _initial_size(queries: Sequence[AnnotatedQuery], settings: SamplingSettings) -> int:
    size = settings.initial * len(queries) if settings.initial < 1 else settings.initial
    return max(1, round(size))


def _draw(count: int, size: int, seed: int | list[int]) -> list[int]:
    if size > count:
        raise InputError(
            f"{size:,} queries are to be drawn from {count:,}. Give a larger pool, or ask for "
            "fewer."
        )
    return sorted(map(int, np.random.default_rng(seed).choice(count, size, replace=False)))
