"""A picture of a large pool with the queries that were there and those that were sampled."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from casewright.errors import DependencyError, InputError
from casewright.finetune.queries.similarity import Floats, Vectors, blocks, units


def principal_axes(vectors: Vectors) -> tuple[Floats, Floats]:
    """Return the mean, array (d), and the two directions in which vectors differ most, (d, 2).

    Principal component analysis over unit vectors, from the covariance, so that memory does not
    grow with the pool.
    """
    count, width = vectors.shape
    total, products = np.zeros(width), np.zeros((width, width))
    for part in blocks(count, 1024):
        rows = units(vectors[part])
        total += rows.sum(axis=0)
        products += rows.T @ rows
    mean = total / count
    _, directions = np.linalg.eigh(products / count - np.outer(mean, mean))
    axes = directions[:, ::-1][:, :2]
    # Which way an axis points is the solver's whim.
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), range(axes.shape[1])] < 0, -1.0, 1.0)
    if axes.shape[1] < 2:
        axes = np.pad(axes, ((0, 0), (0, 1)))
    return mean, axes


def draw_pools(
    file: Path, initial: Vectors, large: Vectors, sample: Vectors, *, method: str
) -> None:
    """Draw the large pool in grey, with the initial pool (before) and the sample (after).

    Args:
        file: A picture; its name's end says of which kind.
        initial: Array (n, d).
        large: Array (N, d); the plane of the picture is that of its two principal components.
        sample: Array (m, d).
        method: How it was sampled, for the title.

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
    grey = (units(large) - mean) @ axes
    figure, places = pyplot.subplots(
        1, 2, figsize=(11, 5), layout="constrained", sharex=True, sharey=True
    )
    shown = (
        (places[0], initial, "tab:blue", f"before: the initial pool, {len(initial):,}"),
        (places[1], sample, "tab:red", f"after: sampled by {method}, {len(sample):,}"),
    )
    for place, vectors, colour, title in shown:
        points = (units(vectors) - mean) @ axes
        # Points of one picture, not shapes by the thousand in a vector file.
        place.scatter(*grey.T, s=3, color="0.8", rasterized=True)
        place.scatter(*points.T, s=9, color=colour, alpha=0.7, rasterized=True)
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
