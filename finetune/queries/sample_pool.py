"""Sampling a pool of queries from start to end: texts in, a sheet and its figures out."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from casewright.errors import InputError
from casewright.finetune.folds import SAME_GROUP
from casewright.finetune.queries.annotation import sheet_record
from casewright.finetune.queries.choose import EXTREMES, METHODS, Method, sample
from casewright.finetune.queries.similarity import Floats, Vectors, best_similarity, distinct, units
from casewright.stores import Encoder
from casewright.stores.plot_file import plot_file
from casewright.stores.progress import note, progress_bar

#: Queries more alike than this are near duplicates.
NEAR_DUPLICATE = SAME_GROUP


@dataclass(frozen=True, slots=True)
class PoolFigures:
    """Figures of a sample; similarities are cosines.

    Attributes:
        coverage: Mean over the large pool of the highest similarity to the sample.
        coverage_with_initial: The same where the initial pool counts beside the sample.
        mean_similarity: Mean similarity of two different queries of the sample; NaN below two.
        near_duplicates: Share of the sample that has another query of it above 0.9.
    """

    queries: int
    coverage: float
    coverage_with_initial: float
    mean_similarity: float
    near_duplicates: float


def pool_figures(sample: Vectors, large: Vectors, by_initial: Floats) -> PoolFigures:
    """Return the figures of a sample.

    Args:
        sample: Array (n, d), at least one query.
        large: Array (N, d), the large pool.
        by_initial: Array (N), the highest similarity of each of them to the initial pool.
    """
    near, count = best_similarity(large, sample), len(sample)
    alike = best_similarity(sample, sample, others=True) if count > 1 else np.zeros(1)
    own = units(sample)
    # The squared length of the vectors' sum holds all pairs.
    pairs = float((own.sum(axis=0) ** 2).sum() - (own * own).sum())
    return PoolFigures(
        queries=count,
        coverage=float(near.mean()),
        coverage_with_initial=float(np.maximum(near, by_initial).mean()),
        mean_similarity=pairs / (count * (count - 1)) if count > 1 else float("nan"),
        near_duplicates=float((alike > NEAR_DUPLICATE).mean()),
    )


def principal_axes(vectors: Vectors) -> tuple[Floats, Floats]:
    """Return the mean of unit vectors, array (d), and their two principal axes, array (d, 2)."""
    rows = units(vectors)
    _, directions = np.linalg.eigh(np.atleast_2d(np.cov(rows.T, bias=True)))
    axes = directions[:, ::-1][:, :2]
    # Which way an axis points is the solver's whim.
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), range(axes.shape[1])] < 0, -1.0, 1.0)
    return rows.mean(axis=0), np.pad(axes, ((0, 0), (0, 2 - axes.shape[1])))


def draw_pools(
    file: Path, initial: Vectors, large: Vectors, sample: Vectors, *, method: str
) -> None:
    """Draw the large pool in grey, with the initial pool (before) and the sample (after).

    Args:
        file: A picture; its name's end says of which kind.
        initial: Array (n, d).
        large: Array (N, d); the plane of the picture is that of its two principal components.
        sample: Array (m, d).

    Raises:
        DependencyError: matplotlib is not installed.
        InputError: The file cannot be written.
    """
    mean, axes = principal_axes(large)
    shown = (
        (initial, "tab:blue", f"before: the initial pool, {len(initial):,}"),
        (sample, "tab:red", f"after: sampled by {method}, {len(sample):,}"),
    )
    settings = {"nrows": 1, "ncols": 2, "figsize": (11, 5), "sharex": True, "sharey": True}
    with plot_file(file, **settings) as (figure, halves):
        for half, (vectors, colour, title) in zip(halves, shown, strict=True):
            # Points of one picture, not shapes by the thousand in a vector file.
            for part, size, own in ((large, 3, "0.8"), (vectors, 9, colour)):
                points = (units(part) - mean) @ axes
                half.scatter(*points.T, s=size, color=own, rasterized=True)
            half.set_title(title)
            half.set_xlabel("first principal component of the large pool")
        halves[0].set_ylabel("second")
        figure.suptitle(f"In grey: the large pool, {len(large):,} queries")


#: Texts that are embedded at once; between them, progress is told.
EMBEDDED = 512


@dataclass(frozen=True, slots=True)
class SampledPool:
    """A sample of a large pool.

    Attributes:
        read: Queries in the large pool's file; those left were there before or in the initial pool.
        figures: By what was sampled: the initial pool, the method, the random control.
        initial: Array (n, d).
        large: Array (N, d), each text once.
    """

    sheet: Sequence[Mapping[str, Any]]
    method: Method
    seed: int
    read: int
    figures: Mapping[str, PoolFigures]
    seconds: Mapping[str, float]
    initial: Vectors
    large: Vectors
    rows_sampled: Sequence[int]

    def rows(self) -> list[dict[str, Any]]:
        """Return the figures as rows; what was not measured is null."""
        return [
            {"pool": name}
            | {
                key: None if isinstance(value, float) and math.isnan(value) else value
                for key, value in asdict(figures).items()
            }
            | {"seconds": self.seconds.get(name)}
            for name, figures in self.figures.items()
        ]

    def notes(self) -> list[str]:
        """Return what a reader of the figures must know."""
        lines = [
            f"{self.read:,} queries in the pool, {len(self.large):,} different ones that are not "
            f"in the initial pool; embedded in {self.seconds['embedding']:.1f} s.",
            "coverage: mean over the pool of the highest similarity to the sample. "
            "near_duplicates: share of the sample with another of it above 0.9.",
        ]
        if "dqs_large" in self.figures:
            lines.append(
                "dqs_large samples the whole pool, as printed: a uniform sample like random, of "
                "another draw."
            )
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-plain form, without the vectors."""
        return {
            "method": self.method,
            "seed": self.seed,
            "sampled": len(self.sheet),
            "pool_read": self.read,
            "pool_distinct": len(self.large),
            "embedding_seconds": self.seconds["embedding"],
            "rows": self.rows(),
            "notes": self.notes(),
        }

    def draw(self, file: Path) -> None:
        """Draw the pool with what was there before and after; see ``draw_pools``."""
        sampled = self.large[list(self.rows_sampled)]
        draw_pools(file, self.initial, self.large, sampled, method=self.method)


def sample_pool(
    initial: Sequence[Mapping[str, Any]],
    large: Sequence[Mapping[str, Any]],
    encoder: Encoder,
    *,
    method: str = "dqs",
    size: int | None = None,
    extremes: float = EXTREMES,
    seed: int = 0,
    compare: bool = False,
) -> SampledPool:
    """Sample the large pool, and measure the sample beside the initial pool and a random one.

    Args:
        initial: Records with a ``query``, at least one.
        large: Records with a ``query``; texts that differ in nothing but case and spaces are one,
            and those of the initial pool are left out.
        method: One of ``METHODS``.
        size: How many; as many as there are different texts in the initial pool by default.
        compare: Measure every method that can draw as many; stderr tells of the others.

    Raises:
        InputError: There are too few queries, or no such method.
    """
    known: Method | None = next((name for name in get_args(Method) if name == method), None)
    if known is None:
        raise InputError(f"There is no method {method!r}. Methods are: {', '.join(METHODS)}.")
    before = [str(record["query"]) for record in initial]
    before = [before[row] for row in distinct(before)]
    texts = [str(record["query"]) for record in large]
    kept = distinct(texts, before)
    wanted = size or len(before)
    if wanted > len(kept):
        raise InputError(
            f"{wanted:,} queries are to be sampled, and the pool has {len(kept):,} different ones "
            "that are not in the initial pool. Give a larger pool, or a smaller --size."
        )
    started = time.perf_counter()
    pools = _embedded(before, encoder), _embedded([texts[row] for row in kept], encoder)
    seconds = {"embedding": time.perf_counter() - started}
    note(f"Sampling {wanted:,} of {len(kept):,} queries …")
    by_initial = best_similarity(pools[1], pools[0])
    figures = {"initial": pool_figures(*pools, by_initial)}
    chosen: list[int] = []
    for name in METHODS if compare else dict.fromkeys((known, METHODS[-1])):
        started = time.perf_counter()
        try:
            rows = sample(name, *pools, wanted, extremes=extremes, seed=seed)
        except InputError as error:
            if name == known:
                raise
            # There may be fewer extremes, or fewer others, than are wanted.
            note(f"{name} is not compared: {error}")
            continue
        seconds[name] = time.perf_counter() - started
        figures[name] = pool_figures(pools[1][rows], pools[1], by_initial)
        if name == known:
            chosen = rows
    return SampledPool(
        [sheet_record(large[kept[row]]) for row in chosen],
        *(known, seed, len(texts), figures, seconds, *pools, chosen),
    )


def _embedded(texts: Sequence[str], encoder: Encoder) -> Vectors:
    parts = []
    with progress_bar("Embedding", len(texts)) as advance:
        for start in range(0, len(texts), EMBEDDED):
            parts.append(encoder.embed(texts[start : start + EMBEDDED]))
            advance(len(parts[-1]))
    return np.concatenate(parts)
