"""Choosing queries: the methods by one name each, and the queries that a recipe learns from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from casewright.errors import InputError
from casewright.finetune.queries.similarity import (
    COLUMNS,
    DECIMALS,
    ROWS,
    Floats,
    Vectors,
    best_similarity,
    blocks,
    check_pools,
    units,
)
from casewright.finetune.section import Section
from casewright.planner import AnnotatedQuery
from casewright.planner.spans import normalized
from casewright.stores import Encoder


def facility_location(vectors: Vectors, size: int, *, chosen: Vectors | None = None) -> list[int]:
    """Pick queries of a pool greedily by facility location.

    The picks S maximise f(S), the sum over the pool's queries of the highest similarity to a pick,
    similarities below 0 counting as 0. f is monotone and submodular, so the greedy picks reach at
    least (1 - 1/e) of the best value (Nemhauser, Wolsey and Fisher 1978). Every gain is kept exact:
    a pick changes gains only through the queries that it is nearer to than the picks before it.

    Time grows with the square of the pool's size, memory with the pool alone.

    Args:
        vectors: Array (N, d), the pool: what is picked from, and what is to be stood for.
        chosen: Array (n, d), what stands for the pool already.

    Returns:
        Rows of the pool in the order of the picks. Gains are compared to six decimals; of equal
        ones the lower row is picked.

    Raises:
        InputError: The pool is no array of vectors, or smaller than ``size``.
    """
    given = vectors[:0] if chosen is None else chosen
    check_pools(vectors, given)
    count = len(vectors)
    if size > count:
        raise InputError(
            f"{size:,} queries are to be picked from {count:,}. Give a larger pool, or ask for "
            "fewer."
        )
    covered = np.zeros(count)
    if len(given) and count:
        covered = np.maximum(best_similarity(vectors, given), 0.0)
    # What a candidate gains at first is what it loses once nothing is left to gain.
    gains = _lost(vectors, np.arange(count), covered, np.full(count, np.inf))
    picks: list[int] = []
    while len(picks) < size:
        best = int(np.argmax(np.round(gains, DECIMALS)))
        picks.append(best)
        near = np.maximum(best_similarity(vectors, vectors[best : best + 1]), covered)
        nearer = np.flatnonzero(near > covered)
        gains -= _lost(vectors, nearer, covered[nearer], near[nearer])
        gains[best] = -np.inf
        covered = near
    return picks


def _lost(vectors: Vectors, rows: NDArray[np.int64], before: Floats, after: Floats) -> Floats:
    """Return what each of N candidates no longer gains where n queries are covered better.

    Args:
        vectors: Array (N, d), the candidates.
        before: Array (n), how well they were covered.
        after: Array (n), how well they are; infinity where nothing is left to gain.
    """
    lost = np.zeros(len(vectors))
    for part in blocks(len(rows), ROWS):
        own = units(vectors[rows[part]])
        low, high = before[part, None], after[part, None]
        for index in blocks(len(vectors), COLUMNS):
            near = own @ units(vectors[index]).T
            lost[index] += np.clip(near, low, high, out=near).sum(axis=0) - low.sum()
    return lost


DqsSource = Literal["refined", "large", "extremes"]
#: The share of the large pool that is extreme at either end, where nobody says otherwise.
EXTREMES = 0.05


def sample_dqs(
    initial: Vectors,
    large: Vectors,
    size: int | None = None,
    *,
    source: DqsSource = "refined",
    extremes: float = EXTREMES,
    seed: int = 0,
) -> list[int]:
    """Sample the large pool; see the module.

    Args:
        initial: Array (n, d), the embedded initial pool.
        large: Array (N, d), the embedded large pool; equal queries are best taken out before.
        size: How many; as many as the initial pool has by default.
        extremes: The share of the large pool that is extreme at either end.

    Returns:
        Rows of the large pool, ascending.

    Raises:
        InputError: A pool is empty or no array of vectors, or there are fewer queries to sample
            than are wanted.
    """
    check_pools(initial, large)
    if not len(initial):
        raise InputError("The initial pool is empty. DQS needs at least one query to start from.")
    size = size or len(initial)
    rows = np.arange(len(large))
    mend = "Give a larger pool, or ask for fewer."
    if source != "large":
        removed = extreme_queries(initial, large, extremes)
        rows = removed if source == "extremes" else np.setdiff1d(rows, removed)
        way = "Raise" if source == "extremes" else "Lower"
        mend = f"{way} the extremes (now {extremes}), or ask for fewer."
    if len(rows) < size:
        raise InputError(
            f"{size:,} queries are to be sampled, and the {source} pool has {len(rows):,}. {mend}"
        )
    drawn = np.random.default_rng(seed).choice(rows, size, replace=False)
    return sorted(map(int, drawn))


def extreme_queries(initial: Vectors, large: Vectors, share: float) -> NDArray[np.int64]:
    """Return the queries in the most and in the least similar pairs: rows of the large pool.

    Similarities are compared to six decimals; of equal ones the lower row is taken.

    Returns:
        Ascending, each once: ``share * N`` rows at either end, rounded.
    """
    count = round(share * len(large))
    nearest = _highest(best_similarity(large, initial), count)
    farthest = _highest(best_similarity(large, -np.asarray(initial)), count)
    return np.union1d(nearest, farthest).astype(np.int64)


def _highest(similarities: Floats, count: int) -> NDArray[np.int64]:
    return np.argsort(-np.rint(similarities * 10**DECIMALS), kind="stable")[:count]


Method = Literal["random", "dqs", "dqs_large", "dqs_extremes", "facility_location"]
METHODS: tuple[Method, ...] = ("dqs", "dqs_large", "dqs_extremes", "facility_location", "random")
#: What the last step of DQS samples, by the method's name.
_SOURCES: dict[str, DqsSource] = {
    "dqs": "refined",
    "dqs_large": "large",
    "dqs_extremes": "extremes",
}
#: Draws of one seed that must not be the same draw: the initial pool, and a random sample.
_INITIAL, _RANDOM = 1, 2


class SamplingSettings(Section):
    """The choice of annotated queries to learn from.

    Attributes:
        method: ``all`` of them; as many at ``random``; or an initial pool, drawn by the seed, with
            what the others add to it.
        size: How many in all, the initial pool included; twice the initial pool by default, since
            DQS samples as many as that has.
        initial: How many queries stand for the initial pool; below 1, a share of them.
        extremes: Of DQS, the share of the other queries that is extreme at either end.
    """

    method: Literal["all"] | Method = "all"
    size: int | None = Field(default=None, ge=1)
    initial: float = Field(default=0.1, gt=0)
    extremes: float = Field(default=EXTREMES, gt=0, lt=0.5)

    @model_validator(mode="after")
    def _initial_is_whole_or_a_share(self) -> Self:
        if self.initial >= 1 and not self.initial.is_integer():
            raise ValueError("initial is a whole number of queries, or a share below 1")
        beside = self.method not in ("all", "random")
        if beside and self.size is not None and 1 <= self.initial >= self.size:
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
        method: DQS from the refined pool, the large one or the extremes; facility location, with
            the initial pool standing for what it is like already; or random, the control.
        initial: Array (n, d).
        large: Array (N, d).

    Raises:
        InputError: There are too few queries, or no such method.
    """
    match method:
        case "dqs" | "dqs_large" | "dqs_extremes":
            source = _SOURCES[method]
            return sample_dqs(initial, large, size, source=source, extremes=extremes, seed=seed)
        case "facility_location":
            return sorted(facility_location(large, size, chosen=initial))
        case "random":
            return _drawn(len(large), size, [seed, _RANDOM])
    raise InputError(f"There is no method {method!r}. Methods are: {', '.join(METHODS)}.")


def choose_queries(
    queries: Sequence[AnnotatedQuery], settings: SamplingSettings, encoder: Encoder, seed: int
) -> list[AnnotatedQuery]:
    """Choose the annotated queries to learn from, in their own order.

    Queries of the same words (but for case and spaces) and the same plan count once, except where
    all are taken.

    Raises:
        InputError: There are fewer than the settings ask for.
    """
    if settings.method == "all":
        return list(queries)
    kept = _different(queries)
    count = _initial_size(kept, settings)
    size = settings.size or 2 * count
    if settings.method == "random":
        return [kept[row] for row in _drawn(len(kept), size, [seed, _RANDOM])]
    if not count < size <= len(kept):
        raise InputError(
            f"sampling: {size:,} queries are wanted, {count:,} of them as the initial pool, and "
            f"there are {len(kept):,} different ones. Set size between the two, or initial lower."
        )
    initial = _drawn(len(kept), count, [seed, _INITIAL])
    others = sorted(set(range(len(kept))) - set(initial))
    vectors = encoder.embed([query.query for query in kept])
    rows = sample(
        settings.method,
        vectors[initial],
        vectors[others],
        size - count,
        extremes=settings.extremes,
        seed=seed,
    )
    chosen = sorted([*initial, *(others[row] for row in rows)])
    return [kept[row] for row in chosen]


def initial_queries(
    queries: Sequence[AnnotatedQuery], settings: SamplingSettings, seed: int
) -> list[AnnotatedQuery]:
    """Return the queries that stand for the initial pool, in their own order.

    Raises:
        InputError: There are fewer than the settings ask for.
    """
    kept = _different(queries)
    rows = _drawn(len(kept), _initial_size(kept, settings), [seed, _INITIAL])
    return [kept[row] for row in rows]


def _different(queries: Sequence[AnnotatedQuery]) -> list[AnnotatedQuery]:
    first: dict[tuple[str, str], AnnotatedQuery] = {}
    for query in queries:
        first.setdefault((normalized(query.query), str(query.plan)), query)
    return list(first.values())


def _initial_size(kept: Sequence[AnnotatedQuery], settings: SamplingSettings) -> int:
    share = settings.initial * len(kept) if settings.initial < 1 else settings.initial
    return max(1, round(share))


def _drawn(count: int, size: int, seed: Sequence[int]) -> list[int]:
    if size > count:
        raise InputError(
            f"{size:,} queries are to be drawn from {count:,}. Give a larger pool, or ask for "
            "fewer."
        )
    drawn = np.random.default_rng(list(seed)).choice(count, size, replace=False)
    return sorted(map(int, drawn))
