"""Choosing queries: the methods by one name each, and the queries that a recipe learns from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from casewright.errors import InputError
from casewright.finetune.queries.dqs import DqsSettings, sample_dqs
from casewright.finetune.queries.facility_location import facility_location
from casewright.finetune.queries.similarity import Vectors
from casewright.finetune.recipe.section import Section
from casewright.planner import AnnotatedQuery
from casewright.planner.spans import normalized
from casewright.stores import Encoder

Method = Literal["random", "dqs", "dqs_large", "facility_location"]
METHODS: tuple[Method, ...] = ("dqs", "dqs_large", "facility_location", "random")
#: Draws of one seed that must not be the same draw: the initial pool, and a random sample.
_INITIAL, _RANDOM = 1, 2


class SamplingSettings(Section):
    """Which of the annotated queries are learned from.

    Attributes:
        method: ``all`` of them; as many at ``random``; or an initial pool, drawn by the seed, with
            what ``dqs``, ``dqs_large`` or ``facility_location`` add to it.
        size: How many in all, the initial pool included; twice the initial pool by default, since
            DQS samples as many as that has.
        initial: How many queries stand for the initial pool; below 1, a share of them.
        extremes: Of DQS; see ``DqsSettings``.
    """

    method: Literal["all", "random", "dqs", "dqs_large", "facility_location"] = "all"
    size: int | None = Field(default=None, ge=1)
    initial: float = Field(default=0.1, gt=0)
    extremes: int = Field(default=10, ge=1)

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
    extremes: int = 10,
    seed: int = 0,
) -> list[int]:
    """Sample a large pool by a method's name.

    Args:
        method: DQS from the refined or from the large pool; facility location, with the initial
            pool standing for what it is like already; or random, the control.
        initial: Array (n, d).
        large: Array (N, d).
        size: How many.
        extremes: Of DQS.
        seed: Of what is drawn.

    Returns:
        Rows of the large pool, ascending.

    Raises:
        InputError: There are too few queries, or no such method.
    """
    match method:
        case "dqs" | "dqs_large":
            source: Literal["refined", "large"] = "refined" if method == "dqs" else "large"
            settings = DqsSettings(extremes=extremes, source=source, size=size)
            return sample_dqs(initial, large, settings, seed=seed)
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
