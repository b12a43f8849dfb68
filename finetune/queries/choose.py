"""Chooses queries to annotate or to learn from, by methods that sample a pool by similarity.

A random initial pool is extended by queries from the large pool, which has all other queries. The
methods ``dqs…`` are the Diverse Query Sampler of REAPER (Joshi et al. 2024). Similarities are
computed block by block, to limit memory. Sums are in double precision and compared to six decimals,
so that results do not depend on the size of a block.
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
#: Numbers of rows and of columns in a block of the similarity matrix.
BLOCK_ROWS, BLOCK_COLUMNS = 256, 2048
#: Number of decimals at which similarities are compared.
DECIMALS = 6
#: Default share of the large pool at each extreme: the most similar, and the least similar queries.
EXTREME_SHARE = 0.05
Method = Literal["dqs", "dqs_large", "dqs_extremes", "facility_location", "random"]
METHODS: tuple[Method, ...] = get_args(Method)
#: Numbers added to a seed, so that an initial pool and a random sample are drawn differently.
_INITIAL_DRAW, _RANDOM_DRAW = 1, 2


def distinct(texts: Sequence[str], excluded: Sequence[str] = ()) -> list[int]:
    """Return the index of the first occurrence of each text that is not in ``excluded``.

    Texts are equal if they differ only in case and spaces.
    """
    first_index: dict[str, int] = {}
    for index, text in enumerate(texts):
        first_index.setdefault(normalized(text), index)
    for text in excluded:
        first_index.pop(normalized(text), None)
    return list(first_index.values())


def check_pools(*pools: Vectors) -> None:
    """Raise ``InputError`` if pools are not finite arrays (n, d) with one d for all."""
    shapes = [np.shape(pool) for pool in pools]
    if any(len(shape) != 2 for shape in shapes) or len({shape[1] for shape in shapes}) > 1:
        raise InputError(
            f"The pools' vectors have the shapes {shapes}. Give arrays (queries, dimension) of one "
            "encoder."
        )
    if not all(np.isfinite(pool[part]).all() for pool in pools for part in blocks(len(pool), 1024)):
        raise InputError("The pools' vectors hold NaN or infinity. Embed the queries again.")


def blocks(count: int, size: int) -> Iterator[slice]:
    """Return slices that divide ``count`` rows into blocks of ``size``."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def _cosines(
    vectors: Vectors, columns: Vectors, rows: NDArray[np.int64] | None = None
) -> Iterator[tuple[slice, slice, Floats]]:
    """Yield row slice, column slice and cosines for blocks of vectors (n, d) and columns (m, d).

    With ``rows``, only these vectors are compared, and the first slice is a part of ``rows``.
    """
    for row_part in blocks(len(vectors) if rows is None else len(rows), BLOCK_ROWS):
        block = unit_vectors(vectors[row_part if rows is None else rows[row_part]])
        for column_part in blocks(len(columns), BLOCK_COLUMNS):
            yield row_part, column_part, block @ unit_vectors(columns[column_part]).T


def unit_vectors(vectors: Vectors) -> Floats:
    """Return vectors at unit length in double precision; a zero vector stays zero."""
    doubles = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(doubles, axis=1, keepdims=True)
    return doubles / np.where(lengths > 0, lengths, 1.0)


def best_similarity(rows: Vectors, columns: Vectors, *, skip_self: bool = False) -> Floats:
    """Return an array (n): each row's highest cosine to a column; rows (n, d), columns (m, d).

    With ``skip_self``, rows and columns are the same vectors; no vector is compared with itself.
    """
    best = np.full(len(rows), -np.inf)
    for row_part, column_part, cosines in _cosines(rows, columns):
        if skip_self:
            row_numbers = np.arange(row_part.start, row_part.stop)
            in_block = (row_numbers >= column_part.start) & (row_numbers < column_part.stop)
            cosines[in_block, row_numbers[in_block] - column_part.start] = -np.inf
        np.maximum(best[row_part], cosines.max(axis=1), out=best[row_part])
    return best


def facility_location(vectors: Vectors, size: int, *, chosen: Vectors | None = None) -> list[int]:
    """Return ``size`` row numbers of a pool (N, d), in the order of greedy facility location.

    The picks S maximise f(S): the sum over the pool's queries of the highest similarity to a pick,
    where negative similarities count as 0. ``chosen`` (n, d) are earlier picks. f is monotone and
    submodular, so the greedy picks reach at least (1 - 1/e) of the best value (Nemhauser, Wolsey
    and Fisher 1978). If gains are equal to six decimals, the lower row is picked. Time grows with
    the square of the pool's size. ``InputError`` if the pool is no array of vectors, or smaller
    than ``size``.
    """
    earlier_picks = vectors[:0] if chosen is None else chosen
    check_pools(vectors, earlier_picks)
    count = len(vectors)
    _check_size(size, count)
    covered = np.zeros(count)
    if len(earlier_picks) and count:
        covered = np.maximum(best_similarity(vectors, earlier_picks), 0.0)
    # Full coverage lowers each candidate's gain to 0, so the decrease is the initial gain.
    gains = _gain_decreases(vectors, np.arange(count), covered, np.full(count, np.inf))
    picks: list[int] = []
    for _ in range(size):
        best = int(np.argmax(np.round(gains, DECIMALS)))
        picks.append(best)
        coverage = np.maximum(best_similarity(vectors, vectors[best : best + 1]), covered)
        changed = np.flatnonzero(coverage > covered)
        gains -= _gain_decreases(vectors, changed, covered[changed], coverage[changed])
        gains[best] = -np.inf
        covered = coverage
    return picks


def _gain_decreases(
    vectors: Vectors, rows: NDArray[np.int64], before: Floats, after: Floats
) -> Floats:
    """Return the decrease of each candidate's gain (N) if the coverage of ``rows`` rises."""
    decreases = np.zeros(len(vectors))
    for row_part, column_part, cosines in _cosines(vectors, vectors, rows):
        low, high = before[row_part, None], after[row_part, None]
        decreases[column_part] += np.clip(cosines, low, high, out=cosines).sum(axis=0) - low.sum()
    return decreases


def extreme_queries(initial: Vectors, large: Vectors, share: float) -> NDArray[np.int64]:
    """Return the sorted row numbers of the extremes of a large pool (N, d).

    A pair has one query of each pool. ``share * N`` rows (rounded) are in the most similar pairs,
    as many in the least similar. Of similarities equal to six decimals, the lower row comes first.
    """
    count = round(share * len(large))
    nearest = _highest(best_similarity(large, initial), count)
    farthest = _highest(best_similarity(large, -np.asarray(initial)), count)
    return np.union1d(nearest, farthest).astype(np.int64)


def _highest(similarities: Floats, count: int) -> NDArray[np.int64]:
    return np.argsort(-np.rint(similarities * 10**DECIMALS), kind="stable")[:count]


class SamplingSettings(Section):
    """The choice of annotated queries to learn from.

    Attributes:
        method: ``all``; ``random``; or a method that adds queries to a random initial pool.
        size: Number of queries with the initial pool; by default twice the size of this pool.
        initial: Size of the initial pool; below 1, a share of the queries.
        extremes: For DQS methods, the share of the large pool at each extreme; see ``sample``.
    """

    method: Literal["all"] | Method = "all"
    size: int | None = Field(default=None, ge=1)
    initial: float = Field(default=0.1, gt=0)
    extremes: float = Field(default=EXTREME_SHARE, gt=0, lt=0.5)

    @model_validator(mode="after")
    def _initial_is_whole_or_a_share(self) -> Self:
        if self.initial >= 1 and not self.initial.is_integer():
            raise ValueError("initial must be a whole number of queries, or a share below 1")
        has_initial = self.method not in ("all", "random")
        if has_initial and self.size is not None and 1 <= self.initial >= self.size:
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
    extremes: float = EXTREME_SHARE,
    seed: int = 0,
) -> list[int]:
    """Return the sorted row numbers of a sample from a large pool (N, d).

    The extremes are the queries most and least similar to the initial pool (n, d); ``extremes`` is
    their share of the large pool at either end. ``dqs`` draws from the large pool without its
    extremes, ``dqs_large`` from the whole pool, ``dqs_extremes`` from its extremes.
    ``facility_location`` picks queries that the initial pool does not cover. ``random`` draws from
    the large pool, as a control. ``InputError`` if a pool is no array of vectors or too small.
    """
    if method == "random":
        return _draw(len(large), size, [seed, _RANDOM_DRAW])
    if method == "facility_location":
        return sorted(facility_location(large, size, chosen=initial))
    check_pools(initial, large)
    if not len(initial):
        raise InputError("The initial pool is empty. DQS needs at least one query to start from.")
    rows = np.arange(len(large))
    if method != "dqs_large":
        extreme_rows = extreme_queries(initial, large, extremes)
        pool, rows, change = "refined", np.setdiff1d(rows, extreme_rows), "Lower"
        if method == "dqs_extremes":
            pool, rows, change = "extremes", extreme_rows, "Raise"
        _check_size(size, len(rows), pool, f"{change} the extremes (now {extremes})")
    return [int(row) for row in rows[_draw(len(rows), size, seed)]]


def choose_queries(
    queries: Sequence[AnnotatedQuery], settings: SamplingSettings, encoder: Encoder, seed: int
) -> list[AnnotatedQuery]:
    """Return the annotated queries to learn from, in the given order.

    The method ``all`` returns all queries. For other methods, queries with the same plan that
    differ only in case and spaces count once. ``InputError`` if there are too few queries.
    """
    if settings.method == "all":
        return list(queries)
    unique = _unique(queries)
    initial_count = _initial_size(unique, settings)
    size = settings.size or 2 * initial_count
    if settings.method == "random":
        return [unique[row] for row in _draw(len(unique), size, [seed, _RANDOM_DRAW])]
    if not initial_count < size <= len(unique):
        raise InputError(
            f"sampling: {size:,} queries are wanted, {initial_count:,} of them as the initial "
            f"pool, and there are {len(unique):,} different ones. Set size to "
            f"{initial_count + 1:,} or more, up to {len(unique):,}; or lower initial."
        )
    initial = _draw(len(unique), initial_count, [seed, _INITIAL_DRAW])
    others = sorted(set(range(len(unique))) - set(initial))
    vectors = encoder.embed([query.query for query in unique])
    pools, extremes = (vectors[initial], vectors[others]), settings.extremes
    count = size - initial_count
    rows = sample(settings.method, *pools, count, extremes=extremes, seed=seed)
    return [unique[row] for row in sorted([*initial, *(others[row] for row in rows)])]


def initial_queries(
    queries: Sequence[AnnotatedQuery], settings: SamplingSettings, seed: int
) -> list[AnnotatedQuery]:
    """Return the initial pool that ``choose_queries`` draws; ``InputError`` for too few queries."""
    unique = _unique(queries)
    rows = _draw(len(unique), _initial_size(unique, settings), [seed, _INITIAL_DRAW])
    return [unique[row] for row in rows]


def _unique(queries: Sequence[AnnotatedQuery]) -> list[AnnotatedQuery]:
    first_query: dict[tuple[str, str], AnnotatedQuery] = {}
    for query in queries:
        first_query.setdefault((normalized(query.query), str(query.plan)), query)
    return list(first_query.values())


def _initial_size(queries: Sequence[AnnotatedQuery], settings: SamplingSettings) -> int:
    size = settings.initial * len(queries) if settings.initial < 1 else settings.initial
    return max(1, round(size))


def _draw(count: int, size: int, seed: int | list[int]) -> list[int]:
    _check_size(size, count)
    return sorted(map(int, np.random.default_rng(seed).choice(count, size, replace=False)))


def _check_size(
    size: int, count: int, pool: str = "large", advice: str = "Give a larger pool"
) -> None:
    if size > count:
        raise InputError(
            f"{size:,} queries cannot be drawn: the {pool} pool has {count:,}. {advice}, or ask "
            "for fewer."
        )
