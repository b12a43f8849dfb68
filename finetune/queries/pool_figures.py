"""How well a sample stands for a pool: figures, and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from casewright.errors import DependencyError, InputError
from casewright.finetune.folds import SAME_GROUP
from casewright.finetune.queries.similarity import (
    Floats,
    Vectors,
    best_similarity,
    units,
)

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
    try:
        import matplotlib
    except ImportError as error:
        raise DependencyError(
            "A plot needs matplotlib. Run: pip install 'casewright[plot]'"
        ) from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    mean, axes = principal_axes(large)
    figure, places = pyplot.subplots(
        1, 2, figsize=(11, 5), layout="constrained", sharex=True, sharey=True
    )
    shown = (
        (initial, "tab:blue", f"before: the initial pool, {len(initial):,}"),
        (sample, "tab:red", f"after: sampled by {method}, {len(sample):,}"),
    )
    for place, (vectors, colour, title) in zip(places, shown, strict=True):
        # Points of one picture, not shapes by the thousand in a vector file.
        for part, size, own in ((large, 3, "0.8"), (vectors, 9, colour)):
            points = (units(part) - mean) @ axes
            place.scatter(*points.T, s=size, color=own, rasterized=True)
        place.set_title(title)
        place.set_xlabel("first principal component of the large pool")
    places[0].set_ylabel("second")
    figure.suptitle(f"In grey: the large pool, {len(large):,} queries")
    try:
        figure.savefig(file, dpi=150)
    except (OSError, ValueError) as error:
        raise InputError(f"The plot cannot be written to {file}: {error}.") from error
    finally:
        pyplot.close(figure)
